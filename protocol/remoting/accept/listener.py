"""A listening TCP socket that accepts a few connections at a time, and waits while no descriptor is free.

asyncio's own servers accept up to the whole backlog before the program learns of the first connection, so a
limit of connections would come too late.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)

_BACKLOG: Final = 1_024
# Connections accepted in one turn of the event loop; a refused connection is closed two turns later.
ACCEPTS_PER_TURN: Final = 8
# Seconds, not scaled, until the next try when the system has no descriptor or memory for a connection.
PAUSE_SECONDS: Final = 0.5
# Seconds between two lines in the log.
_LOG_SECONDS: Final = 10.0
_EXHAUSTED: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class TcpListener:
    """Accepts connections for a protocol factory until ``close``.

    Args:
        sockets: bound sockets; the listener closes them.
    """

    def __init__(self, sockets: list[socket.socket], factory: Callable[[], asyncio.Protocol]) -> None:
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._factory = factory
        self._address = sockets[0].getsockname()
        self._accepting: set[asyncio.Task[None]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        self._logged_at = -_LOG_SECONDS
        for listening in sockets:
            listening.setblocking(False)
            listening.listen(_BACKLOG)
            self._loop.add_reader(listening, self._accept, listening)

    @property
    def host(self) -> str:
        return str(self._address[0])

    @property
    def port(self) -> int:
        return int(self._address[1])

    def close(self) -> None:
        """Stop accepting; accepted connections stay."""
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted, _ = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(listening, error)
                    return
                # The peer has gone, or the network has failed for this connection only.
                continue
            task = self._loop.create_task(self._connect(accepted))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._factory, accepted)
        except OSError as error:
            _log.info("an accepted connection failed: %s", error)
            accepted.close()

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """Stop watching a socket for a while: it stays readable, and the loop would spin."""
        now = self._loop.time()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            _log.error("cannot accept connections at port %d, they wait: %s", self.port, error.strerror)
        self._loop.remove_reader(listening)
        self._pauses[listening] = self._loop.call_later(PAUSE_SECONDS, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)


async def listen_tcp(factory: Callable[[], asyncio.Protocol], host: str, port: int) -> TcpListener:
    """Bind every address of ``host`` and accept connections; see ``Network.listen``.

    Raises:
        OSError: an address cannot be bound, or the host does not resolve.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for address in dict.fromkeys(info[4] for info in found):
            sockets.append(listening := socket.socket(family, socket.SOCK_STREAM))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(address)
        return TcpListener(sockets, factory)
    except BaseException:
        for listening in sockets:
            listening.close()
        raise
