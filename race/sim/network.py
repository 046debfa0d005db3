"""TCP without sockets: connections between the hosts of one world, in virtual time."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from rewindmq.race.sim.host import Incarnation, current_incarnation

T = TypeVar("T")
_DEFAULT_HIGH_WATER: Final = 64 * 1024
_FIRST_EPHEMERAL_PORT: Final = 40_000
_LOCAL_HOSTS: Final = frozenset({"", "0.0.0.0", "127.0.0.1", "localhost"})  # noqa: S104

Address = tuple[str, int]
Factory = Callable[[], asyncio.Protocol]


class Fabric:
    """The network between the hosts: its listeners, its connections and the latency of messages.

    Every write travels as one message with its own latency. Messages of one direction of a connection arrive
    in the order they were written.
    """

    def __init__(self, rng: random.Random, latency: tuple[float, float]) -> None:
        self._random = rng
        self._latency = latency
        self._next_port: dict[str, int] = {}
        self.listeners: dict[Address, SimListener] = {}
        # Insertion order, so that a kill resets connections in the order they were made.
        self._ends: dict[SimTransport, None] = {}

    def delay(self) -> float:
        """Draw the latency of a message, in seconds."""
        return self._random.uniform(*self._latency)

    def free_port(self, host: str) -> int:
        """Return a port without a listener; never return it again for the same host."""
        port = self._next_port.get(host, _FIRST_EPHEMERAL_PORT)
        while (host, port) in self.listeners:
            port += 1
        self._next_port[host] = port + 1
        return port

    def carry(self, end: SimTransport) -> None:
        """Schedule the arrival of the message that ``end`` wrote last."""
        end.arrive_in(self.delay())

    def add(self, end: SimTransport) -> None:
        """Register an end of a connection."""
        self._ends[end] = None

    def remove(self, end: SimTransport) -> None:
        """Remove an end of a connection."""
        self._ends.pop(end, None)

    def kill(self, owner: Incarnation) -> None:
        """Take a host off the network: close its listeners and reset the other ends of its connections."""
        for address in [address for address, listener in self.listeners.items() if listener.owner is owner]:
            del self.listeners[address]
        for end in [end for end in self._ends if end.owner is owner]:
            end.vanish()

    def sever(self, host: str, other: str) -> None:
        """Reset every connection between two hosts; messages in flight are lost."""
        for end in [end for end in self._ends if (end.local[0], end.remote[0]) == (host, other)]:
            end.cut()


@dataclass(frozen=True, slots=True)
class SimListener:
    """A bound endpoint of the simulated network."""

    owner: Incarnation
    fabric: Fabric
    host: str
    port: int
    factory: Factory

    def close(self) -> None:
        self.fabric.listeners.pop((self.host, self.port), None)


class SimNetwork:
    """One host's access to the fabric; implements the runtime's ``Network``."""

    def __init__(self, fabric: Fabric, owner: Incarnation) -> None:
        self._fabric = fabric
        self._owner = owner
        self._host = owner.host

    async def listen(self, factory: Factory, host: str, port: int) -> SimListener:
        """Listen on a port of this host; port 0 picks a free one.

        Raises:
            OSError: the port is in use, or ``host`` is another machine.
        """
        if self._resolve(host) != self._host:
            raise _os_error(errno.EADDRNOTAVAIL)
        port = port or self._fabric.free_port(self._host)
        if (self._host, port) in self._fabric.listeners:
            raise _os_error(errno.EADDRINUSE)
        listener = SimListener(self._owner, self._fabric, self._host, port, factory)
        self._fabric.listeners[self._host, port] = listener
        return listener

    async def connect(
        self, factory: Factory, host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect within the world; takes the latency of one message there and one back.

        Raises:
            ConnectionRefusedError: the port has no listener when the first message arrives.
        """
        loop = asyncio.get_running_loop()
        remote = (self._resolve(host), port)
        await asyncio.sleep(self._fabric.delay())
        listener = self._fabric.listeners.get(remote)
        if listener is None:
            await asyncio.sleep(self._fabric.delay())
            raise _os_error(errno.ECONNREFUSED)
        local = (self._host, self._fabric.free_port(self._host))
        accepted = SimTransport(loop, self._fabric, listener.owner, listener.factory, remote, local)
        dialled = SimTransport(loop, self._fabric, self._owner, factory, local, remote)
        accepted.join(dialled)
        dialled.join(accepted)
        accepted.open()
        try:
            await asyncio.sleep(self._fabric.delay())
        except asyncio.CancelledError:
            dialled.abort()
            raise
        dialled.open()
        return dialled, dialled.get_protocol()

    def _resolve(self, host: str) -> str:
        return self._host if host in _LOCAL_HOSTS else host


class SimTransport(asyncio.Transport):
    """One end of a connection. Bytes count as unsent until the other end's protocol has received them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fabric: Fabric,
        owner: Incarnation,
        factory: Factory,
        local: Address,
        remote: Address,
    ) -> None:
        super().__init__({"peername": remote, "sockname": local})
        self.owner = owner
        self.local = local
        self.remote = remote
        self._loop = loop
        self._fabric = fabric
        self._protocol = self._in_owner(factory)
        self._peer: SimTransport
        self._opened = False
        self._closing = False
        self._lost = False
        self._reset: ConnectionResetError | None = None
        self._reading = True
        self._writing_paused = False
        self._high = _DEFAULT_HIGH_WATER
        self._low = _DEFAULT_HIGH_WATER // 4
        self._unsent = 0
        self._arrival = 0.0
        # Messages that arrived and were not yet handed to the protocol; None is the end of the stream.
        self._inbox: deque[bytes | None] = deque()
        # Messages that were written and have not yet arrived at the other end.
        self.travelling: deque[bytes | None] = deque()

    def join(self, peer: SimTransport) -> None:
        """Set the other end and register with the fabric."""
        self._peer = peer
        self._fabric.add(self)

    @property
    def peer(self) -> SimTransport:
        """The other end."""
        return self._peer

    def open(self) -> None:
        """Hand the transport to its protocol, then the messages that arrived before."""
        self._opened = True
        self._in_owner(self._protocol.connection_made, self)
        self._soon(self._deliver)
        if self._reset is not None:
            self._soon(self._lose, self._reset)

    def _in_owner(self, function: Callable[..., T], *args: Any) -> T:
        """Call ``function`` as code of this end's host."""
        if current_incarnation() is self.owner:
            return function(*args)
        return self.owner.context.run(function, *args)

    def _soon(self, function: Callable[..., object], *args: Any) -> None:
        self._loop.call_soon(function, *args, context=self.owner.context)

    # The interface of ``asyncio.Transport``.

    def get_protocol(self) -> asyncio.Protocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._soon(self._deliver)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else _DEFAULT_HIGH_WATER
        self._low = low if low is not None else self._high // 4

    def get_write_buffer_size(self) -> int:
        return self._unsent

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._closing or not data:
            return
        self._unsent += len(data)
        self._post(bytes(data))
        if self._unsent > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        """Close after everything written is delivered."""
        if not self._closing:
            self._closing = True
            self._soon(self._deliver)
            self._post(None)
            if not self._unsent:
                self._soon(self._lose, None)

    def abort(self) -> None:
        """Close now: drop messages in flight and reset the other end."""
        if self._lost:
            return
        self._closing = True
        self.travelling.clear()
        self._fabric.remove(self)
        self._soon(self._lose, None)
        self._peer._reset_later()

    # Failures of a connection.

    def vanish(self) -> None:
        """Remove this end because its host was killed, and reset the other end."""
        self._lost = self._closing = True
        self.travelling.clear()
        self._inbox.clear()
        self._fabric.remove(self)
        self._peer._reset_later()

    def cut(self) -> None:
        """Break the connection: drop messages in flight and reset both ends."""
        for end in (self, self._peer):
            end.travelling.clear()
            end._reset_later()

    def _reset_later(self) -> None:
        self._loop.call_later(self._fabric.delay(), self._reset_arrives, context=self.owner.context)

    # Messages to the other end.

    def _post(self, message: bytes | None) -> None:
        self.travelling.append(message)
        self._fabric.carry(self)

    def arrive_in(self, seconds: float) -> None:
        """Schedule the message written last to arrive in ``seconds``, but never before earlier messages."""
        self._arrival = max(self._arrival, self._loop.time() + seconds)
        self._loop.call_at(self._arrival, self._arrive, context=self._peer.owner.context)

    def arrive(self) -> None:
        """Deliver the first message in flight now."""
        self._peer._in_owner(self._arrive)

    def _arrive(self) -> None:
        if self.travelling:
            self._peer._inbox.append(self.travelling.popleft())
            self._peer._deliver()

    def _deliver(self) -> None:
        inbox = self._inbox
        while inbox and self._opened and (self._reading or self._closing):
            message = inbox.popleft()
            if message is None:
                self._end_of_stream()
                return
            # After ``close``, messages are still read, but discarded.
            if not self._closing:
                self._protocol.data_received(message)
            self._peer._delivered(len(message))

    def _delivered(self, size: int) -> None:
        self._unsent -= size
        if self._lost:
            return
        if self._writing_paused and self._unsent <= self._low:
            self._writing_paused = False
            self._in_owner(self._protocol.resume_writing)
        if self._closing and not self._unsent:
            self._soon(self._lose, None)

    def _end_of_stream(self) -> None:
        if not self._closing and not self._protocol.eof_received():
            self.close()

    def _reset_arrives(self) -> None:
        self._reset = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        self._lose(self._reset)

    def _lose(self, error: Exception | None) -> None:
        if self._opened and not self._lost:
            self._lost = self._closing = True
            self._inbox.clear()
            self._fabric.remove(self)
            self._protocol.connection_lost(error)


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
