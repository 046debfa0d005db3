"""serving: an ASGI application at a port, by uvicorn, on the running event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """Leaves the process's signals alone; its owner stops it."""

    def install_signal_handlers(self) -> None:
        """Install none."""


@asynccontextmanager
async def serving(app: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    """Serve until the block ends; yield the address, such as ``http://127.0.0.1:8082``.

    Args:
        port: 0: any free one.

    Raises:
        OSError: the port is taken, or the host is not an address of this machine.
    """
    family = (await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM))[0][0]
    listener = socket.create_server((host, port), family=family)
    config = uvicorn.Config(
        app, log_level="warning", lifespan="off", ws="none", http="h11", timeout_graceful_shutdown=1,
        server_header=False,
    )
    server = _Server(config)
    try:
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        ticking = asyncio.ensure_future(server.main_loop())
        try:
            name = f"[{host}]" if ":" in host else host
            yield f"http://{name}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await ticking
            await server.shutdown(sockets=[listener])
    finally:
        listener.close()
