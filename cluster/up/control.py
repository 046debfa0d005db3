"""The control socket of ``rewindmq up``: it answers the commands of ``rewindmq members``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec

from rewindmq.cluster.up.entrances import Entrances
from rewindmq.cluster.up.folder import listening_socket, registered, remove_socket
from rewindmq.cluster.up.members import Members
from rewindmq.cluster.up.messages import MAX_REQUEST_BYTES, MemberAction, Request, Response
from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import RewindMQError

# A connection that has not sent its command by then is closed.
_COMMAND_SECONDS: Final = 10.0
_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def control_socket(
    directory: Path, members: Members, entrances: Entrances | None = None
) -> AsyncIterator[None]:
    """Answer commands during an ``async with`` statement; at its end, connections are closed without answer.

    Args:
        entrances: of the control port; None: there is none.

    Raises:
        OSError: the socket cannot be made.
    """
    listener = listening_socket(directory)
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await _serve(reader, writer, Response(str(directory), os.getpid(), entrances), members)
        except (OSError, asyncio.CancelledError):
            # The other side has gone, or this cluster stops.
            pass
        finally:
            serving.discard(task)
            writer.close()

    async with contextlib.AsyncExitStack() as ends:
        ends.push_async_callback(_cancel_all, serving)
        ends.callback(remove_socket, directory)
        ends.callback(listener.close)
        server = await asyncio.start_unix_server(serve, sock=listener, limit=MAX_REQUEST_BYTES)
        ends.callback(server.close)
        ends.enter_context(registered(directory))
        yield


async def _cancel_all(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, response: Response, members: Members
) -> None:
    """Answer one command."""
    try:
        async with asyncio.timeout(_COMMAND_SECONDS):
            line = await reader.readuntil(b"\n")
        request = msgspec.json.decode(line, type=Request)
    except (asyncio.IncompleteReadError, TimeoutError):
        return
    except (asyncio.LimitOverrunError, *DECODE_FAILURES):
        response.error = "the command is not one line of JSON that this version knows"
    else:
        await _answer(request, response, members)
    writer.write(msgspec.json.encode(response) + b"\n")
    await writer.drain()


async def _answer(request: Request, response: Response, members: Members) -> None:
    try:
        if request.action is MemberAction.LIST:
            response.members = members.list()
        else:
            response.members = [await members.do(request.action, request.member)]
    except (RewindMQError, OSError) as error:
        response.error = str(error)
    except Exception as error:
        _log.exception("members %s %s failed", request.action, request.member)
        response.error = f"{type(error).__name__}: {error}"
