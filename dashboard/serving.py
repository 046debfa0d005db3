"""serving: an ASGI application at a port, by uvicorn, on the running event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import uvicorn
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rewindmq.dashboard.connections import LimitedProtocol

# What a stop waits for downloads. uvicorn's own limit is in whole seconds, and logs an error.
_GRACE_SECONDS: Final = 0.8


@asynccontextmanager
async def serving(app: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    """Serve until the block ends; yield the address, such as ``http://127.0.0.1:8082``.

    Args:
        port: 0: any free one.

    Raises:
        OSError: the port is taken, or the host is not an address of this machine.
    """
    stopping = asyncio.Event()
    family = (await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM))[0][0]
    listener = socket.create_server((host, port), family=family)
    config = uvicorn.Config(
        _ended_by(app, stopping),
        log_level="warning",
        lifespan="on",
        ws="none",
        http=LimitedProtocol,
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    # Its own serve() would take over the signals of the process, which belong to the runner.
    server = uvicorn.Server(config)
    try:
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        ticking = asyncio.ensure_future(server.main_loop())
        try:
            name = f"[{host}]" if ":" in host else host
            yield f"http://{name}:{listener.getsockname()[1]}"
        finally:
            stopping.set()
            server.should_exit = True
            await ticking
            abort = asyncio.get_running_loop().call_later(_GRACE_SECONDS, _abort, server)
            try:
                await server.shutdown(sockets=[listener])
            finally:
                abort.cancel()
    finally:
        listener.close()


def _abort(server: uvicorn.Server) -> None:
    """End the connections of visitors who do not read their download."""
    for connection in [*server.server_state.connections]:
        connection.transport.abort()


def _ended_by(app: ASGIApp, stopping: asyncio.Event) -> ASGIApp:
    """Return the application, for which browsers go away at the stop, so that live pages end.

    A browser stays for a response with a length, such as a download.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # The application's own start and stop.
            await app(scope, receive, send)
            return

        async def receive_or_stop() -> Message:
            received = asyncio.ensure_future(receive())
            stopped = asyncio.ensure_future(stopping.wait())
            try:
                await asyncio.wait((received, stopped), return_when=asyncio.FIRST_COMPLETED)
                if has_length:
                    # A download goes on until its end, or until ``serving`` aborts the connection.
                    await asyncio.wait((received,))
                return received.result() if received.done() else {"type": "http.disconnect"}
            finally:
                received.cancel()
                stopped.cancel()

        has_length = is_open = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_length, is_open
            await send(message)
            is_begin = message["type"] == "http.response.start"
            if is_begin:
                has_length = "content-length" in Headers(raw=message["headers"])
            # A response without a length, such as a live page, may end anywhere.
            is_open = not has_length and message.get("more_body", is_begin)

        await app(scope, receive_or_stop, send_and_note)
        if is_open and stopping.is_set():
            # uvicorn logs an error for a response without an end.
            await send({"type": "http.response.body", "body": b""})

    return serve
