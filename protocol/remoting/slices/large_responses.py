"""Large responses: built and encoded in slices, so that a server serves other requests meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Final

import msgspec

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.codec.body_slices import SLICE_VALUES, encode_in_slices
from rewindmq.protocol.command import CommandHeader, RemotingCommand
from rewindmq.protocol.remoting.connection import Reply
from rewindmq.protocol.remoting.dispatch import accepts_standard_json
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.protocol.remoting.slices.run import run_at_once, run_slices

# A body with this many entries is built and encoded at once: at most a few ms.
SMALL_ENTRIES: Final = SLICE_VALUES // 2


class LargeResponses:
    """Builds and encodes the large bodies of a server, one body at a time.

    The others wait, before they copy a table: at most one slice runs in a turn of the event loop, and at most
    one body is in memory beside those that are being sent.
    """

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._turn = asyncio.Lock()

    def reply(
        self,
        request: RemotingCommand,
        entries: int,
        make_body: Callable[[], msgspec.Struct],
        header: CommandHeader | None = None,
    ) -> Reply:
        """Return the response with a body of so many entries: at once if they are few.

        Args:
            make_body: called when the response's turn has come; copies what may change meanwhile.
            header: the response's header.
        """
        return self.reply_in_slices(request, entries, _at_once(make_body), header)

    def reply_in_slices(
        self,
        request: RemotingCommand,
        entries: int,
        body: Generator[None, None, msgspec.Struct],
        header: CommandHeader | None = None,
    ) -> Reply:
        """Return the response with a body of so many entries: at once if they are few, else as ``build``."""
        if entries > SMALL_ENTRIES:
            return self.build(request, body, header)
        return RemotingCommand(ResponseCode.SUCCESS, header, run_at_once(body))

    async def build(
        self,
        request: RemotingCommand,
        body: Generator[None, None, msgspec.Struct],
        header: CommandHeader | None = None,
    ) -> RemotingCommand:
        """Return the response with the body that a generator builds.

        Args:
            body: yields after about 1 ms of work, and returns the body. It starts when its turn has come.

        Raises:
            RequestError: of ``body``; SYSTEM_ERROR (1) if the body does not fit into a frame.
        """
        async with self._turn:
            encoded = await run_slices(self._timers, _encoded(request, body))
        return RemotingCommand(ResponseCode.SUCCESS, header, encoded)


def _at_once(make_body: Callable[[], msgspec.Struct]) -> Generator[None, None, msgspec.Struct]:
    yield
    return make_body()


def _encoded(
    request: RemotingCommand, body: Generator[None, None, msgspec.Struct]
) -> Generator[None, None, bytes]:
    built = yield from body
    strict = accepts_standard_json(request)
    return (yield from encode_in_slices(built, request.serialize_type, standard_json=strict))
