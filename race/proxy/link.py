"""One connection of a client, and the connection to the server that the proxy made for it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine
from typing import Any, Final, Protocol, cast

from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.connecting import connect_within
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.lane import Lane, Traffic

# NettyClientConfig.connectTimeoutMillis; seconds, not scaled.
CONNECT_SECONDS: Final = 3.0

_log = logging.getLogger(__name__)


class Front(Protocol):
    """What a link belongs to: the place where a server seems to be."""

    name: str
    upstream: str
    runtime: Runtime
    client_name: str

    def link_failed(self, reason: str) -> None:
        """No connection to the server could be made."""

    def link_closed(self, link: Link) -> None:
        """Both connections are gone."""


async def dial(runtime: Runtime, end: asyncio.Protocol, name: str, address: str) -> None:
    """Connect ``end`` to a server.

    Raises:
        RaceError: it cannot be reached; says which, where and why.
    """
    host, port = parse_address(address)
    try:
        await connect_within(runtime, lambda: end, host, port, CONNECT_SECONDS)
    except OSError as error:
        raise RaceError(f"no {name} at {address}: {_why(error)}") from None


class Link:
    """The two ends and the two lanes between them.

    A connection that the client has half closed is half closed towards the server, where the network can do
    that, and goes on to carry answers. One that is lost takes the other along, once what it had sent has been
    passed on.
    """

    def __init__(self, front: Front, traffic: Traffic) -> None:
        self._front = front
        self.client = _End(self)
        self.server = _End(self)
        requests = Lane(traffic, self, front.client_name, front.name)
        answers = Lane(traffic, self, front.name, front.client_name)
        requests.opposite, answers.opposite = answers, requests
        self.client.lane, self.server.lane = requests, answers
        self.client.peer, self.server.peer = self.server, self.client
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    def accepted(self) -> None:
        """The client has connected: now connect to the server."""
        self.spawn(self._dial())

    def abort(self) -> None:
        """End both connections now."""
        for task in self._tasks:
            task.cancel()
        for end in (self.client, self.server):
            end.abort()
        self.end_lost()

    async def _dial(self) -> None:
        front = self._front
        try:
            await dial(front.runtime, self.server, front.name, front.upstream)
        except RaceError as error:
            _log.warning("closing a connection of %s: %s", front.client_name, error)
            front.link_failed(str(error))
            self.client.abort()
            self.server.was_never_there()

    # What the ends tell.

    def end_connected(self, end: _End) -> None:
        """One connection is there."""
        if end is self.client:
            self.accepted()
        elif self.client.is_lost:
            end.close()
        for either in (self.client, self.server):
            either.update_reading()

    def end_lost(self) -> None:
        """One connection is gone."""
        if self.client.is_lost and self.server.is_lost and not self._is_over:
            self._is_over = True
            for task in self._tasks:
                task.cancel()
            self._front.link_closed(self)

    # What the lanes ask.

    def send(self, lane: Lane, data: bytes) -> bool:
        return self._source_of(lane).peer.write(data)

    def has_room_changed(self, lane: Lane) -> None:
        self._source_of(lane).update_reading()

    def is_through(self, lane: Lane) -> None:
        source = self._source_of(lane)
        if source.peer.lane.is_through:
            source.close()
            source.peer.close()
        elif source.is_lost:
            source.peer.close()
        else:
            source.peer.finish_writing()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _source_of(self, lane: Lane) -> _End:
        return self.client if lane is self.client.lane else self.server


class _End(asyncio.Protocol):
    """One end: what comes goes into its lane; it is read no faster than the other end can be written."""

    lane: Lane
    peer: _End

    def __init__(self, link: Link) -> None:
        self._link = link
        self._transport: asyncio.Transport | None = None
        # Bytes for a connection that is still being made.
        self._early: list[bytes] = []
        self._is_finishing = False
        self._is_deaf = False
        self._is_reading = True
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        for data in self._early:
            self._transport.write(data)
        self._early.clear()
        self._link.end_connected(self)
        if self._is_finishing:
            self.finish_writing()

    def data_received(self, data: bytes) -> None:
        self.lane.feed(bytes(data))

    def eof_received(self) -> bool:
        if self is self._link.server:
            # Servers of this protocol close a connection as a whole; what is still held for them is lost.
            self.peer.lane.die()
        self.lane.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.peer.lane.die()
        self.lane.end()
        if self.lane.is_through:
            self.peer.close()
        self._link.end_lost()

    def pause_writing(self) -> None:
        self._is_deaf = True
        self.peer.update_reading()

    def resume_writing(self) -> None:
        self._is_deaf = False
        self.peer.update_reading()

    def update_reading(self) -> None:
        """Read, or not, as the other end and its lane allow."""
        wanted = self.peer._transport is not None and not self.peer._is_deaf and not self.lane.is_full
        transport = self._transport
        if transport is None or wanted is self._is_reading or self.is_lost or transport.is_closing():
            return
        self._is_reading = wanted
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def write(self, data: bytes) -> bool:
        """Write to the connection. Return False if it is lost."""
        if self._transport is None:
            self._early.append(data)
        elif self.is_lost or self._transport.is_closing():
            return False
        else:
            self._transport.write(data)
        return True

    def finish_writing(self) -> None:
        """Send the end of the stream; where there are no half-closed connections, close."""
        self._is_finishing = True
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def close(self) -> None:
        """Close when everything written has left."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()
        else:
            self.is_lost = True

    def was_never_there(self) -> None:
        """The connection was not made."""
        self.is_lost = True
        self.peer.lane.die()
        self._link.end_lost()


def _why(error: OSError) -> str:
    if error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
