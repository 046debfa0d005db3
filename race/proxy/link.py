"""Link: a client's connection, and the proxy's own connection to the server for it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine
from typing import Any, Final, Protocol, cast

from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.connecting import connect_within
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.lane import FrameHooks, Lane
from rewindmq.race.proxy.outlet import LinkCondition

# RocketMQ's NettyClientConfig#connectTimeoutMillis, in seconds; never scaled.
CONNECT_SECONDS: Final = 3.0


class LinkOwner(Protocol):
    """The stand-in for a server that accepts a link's client connections."""

    name: str
    upstream: str
    runtime: Runtime
    client_name: str

    def link_failed(self, reason: str) -> None:
        """Note that the server cannot be reached."""

    def link_closed(self, link: Link) -> None:
        """Note that both connections are closed."""


async def dial(runtime: Runtime, end: asyncio.Protocol, name: str, address: str) -> None:
    """Connect ``end`` to a server.

    Raises:
        RaceError: the server cannot be reached; the text names it, its address and the reason.
    """
    host, port = parse_address(address)
    try:
        await connect_within(runtime, lambda: end, host, port, CONNECT_SECONDS)
    except OSError as error:
        raise RaceError(f"no {name} at {address}: {_why(error)}") from None


class Link:
    """The two connections, and a lane for each direction between them.

    If the client half-closes its connection, the link half-closes the other one, if the network supports
    that, and still passes on responses. If one connection is lost, the link closes the other after it has
    passed on everything received.
    """

    def __init__(self, owner: LinkOwner, hooks: FrameHooks) -> None:
        self._owner = owner
        self.client = _End(self)
        self.server = _End(self)
        requests = Lane(owner.runtime, hooks, self, owner.client_name, owner.name)
        answers = Lane(owner.runtime, hooks, self, owner.name, owner.client_name)
        requests.opposite, answers.opposite = answers, requests
        self.client.lane, self.server.lane = requests, answers
        self.client.peer, self.server.peer = self.server, self.client
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    @property
    def server_name(self) -> str:
        return self._owner.name

    def set_condition(self, condition: LinkCondition) -> None:
        """Change the condition of both directions."""
        for end in (self.client, self.server):
            end.lane.set_condition(condition)

    def accepted(self) -> None:
        """Connect to the server, now that the client has connected."""
        self.spawn(self._dial())

    def abort(self) -> None:
        """Close both connections now."""
        for task in self._tasks:
            task.cancel()
        for end in (self.client, self.server):
            end.abort()
        self.end_lost()

    async def _dial(self) -> None:
        owner = self._owner
        try:
            await dial(owner.runtime, self.server, owner.name, owner.upstream)
        except RaceError as error:
            owner.link_failed(str(error))
            self.client.abort()
            self.server.connection_failed()

    # Called by the ends.

    def end_connected(self, end: _End) -> None:
        """Handle a new connection."""
        if end is self.client:
            self.accepted()
        elif self.client.is_lost:
            end.close()
        for either in (self.client, self.server):
            either.update_reading()

    def end_lost(self) -> None:
        """Handle the loss of a connection."""
        if self.client.is_lost and self.server.is_lost and not self._is_over:
            self._is_over = True
            for task in self._tasks:
                task.cancel()
            self._owner.link_closed(self)

    # Called by the lanes (``LaneOwner``).

    def send(self, lane: Lane, data: bytes) -> bool:
        return self._source_of(lane).peer.write(data)

    def room_changed(self, lane: Lane) -> None:
        self._source_of(lane).update_reading()

    def lane_finished(self, lane: Lane) -> None:
        source = self._source_of(lane)
        if source.peer.lane.is_finished:
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
    """One connection: feeds received bytes to its lane, and reads no faster than the other end can write."""

    lane: Lane
    peer: _End

    def __init__(self, link: Link) -> None:
        self._link = link
        self._transport: asyncio.Transport | None = None
        # Bytes to send once the connection is open.
        self._unsent: list[bytes] = []
        self._is_finishing = False
        self._is_writing_paused = False
        self._is_reading = True
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        for data in self._unsent:
            self._transport.write(data)
        self._unsent.clear()
        self._link.end_connected(self)
        if self._is_finishing:
            self.finish_writing()

    def data_received(self, data: bytes) -> None:
        self.lane.feed(bytes(data))

    def eof_received(self) -> bool:
        if self is self._link.server:
            # RocketMQ's servers do not half-close: requests still held for them are lost.
            self.peer.lane.target_lost()
        self.lane.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.peer.lane.target_lost()
        self.lane.end()
        if self.lane.is_finished:
            self.peer.close()
        self._link.end_lost()

    def pause_writing(self) -> None:
        self._is_writing_paused = True
        self.peer.update_reading()

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self.peer.update_reading()

    def update_reading(self) -> None:
        """Resume or pause reading, as the other end and the lane allow."""
        wanted = (
            self.peer._transport is not None and not self.peer._is_writing_paused and not self.lane.is_full
        )
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
            self._unsent.append(data)
        elif self.is_lost or self._transport.is_closing():
            return False
        else:
            self._transport.write(data)
        return True

    def finish_writing(self) -> None:
        """Send the end of the stream; close the connection if the network has no half-close."""
        self._is_finishing = True
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def close(self) -> None:
        """Close after everything written is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()
        else:
            self.is_lost = True

    def connection_failed(self) -> None:
        """Handle a failed attempt to connect."""
        self.is_lost = True
        self.peer.lane.target_lost()
        self._link.end_lost()


def _why(error: OSError) -> str:
    if error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return error.strerror or str(error)
