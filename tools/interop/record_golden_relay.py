"""Relays between RocketMQ processes: they record every frame as it was sent, and change only addresses.

A process gets a relay's address instead of its name server's address. Some answers contain addresses of
brokers: GET_ROUTEINFO_BY_TOPIC (105), GET_BROKER_CLUSTER_INFO (106), and REGISTER_BROKER (103) to a slave.
The relay replaces these by addresses of relays, so that later connections go through relays, too. The
recording has the peer's original frame. RocketMQ tells its processes apart by address, so each role (client,
tools, broker, slave) has its own relays.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.remoting.address import format_address, parse_address
from rewindmq.protocol.version import LanguageCode
from rewindmq.race.proxy.cutter import FrameCutter
from rewindmq.race.proxy.route_answer import ROUTE_CODES, broker_addresses, with_addresses
from tools.interop.servers import free_port

NAMESRV: Final = "namesrv"
BROKER: Final = "broker"
SLAVE: Final = "slave"
# Roles whose routes stay unchanged: they ask for no routes, and the tests look for a broker's own address.
_PLAIN_ROUTES: Final = frozenset((BROKER, SLAVE))
# A broker's VIP channel listens at its port minus 2.
_VIP_STEP: Final = -2
_CHUNK: Final = 1 << 16
_ADDRESS_FIELDS: Final = ("masterAddr", "haServerAddr")


@dataclass(frozen=True)
class Captured:
    """One frame as it was sent.

    Attributes:
        code: request code; for a response, the code of its request.
        form: ``request``, ``oneway`` or ``response``.
        outcome: response code; None for a request.
    """

    sender: str
    receiver: str
    code: int
    form: str
    outcome: int | None
    command: RemotingCommand
    data: bytes


@dataclass
class GoldenRecording:
    """Everything that went through the relays.

    Attributes:
        frames: in the order of their arrival.
        replication: bytes between master and slave, by sender.
    """

    frames: list[Captured] = field(default_factory=list)
    replication: dict[str, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, frame: Captured) -> None:
        with self._lock:
            self.frames.append(frame)

    def add_replication(self, sender: str, data: bytes) -> None:
        with self._lock:
            self.replication[sender] = self.replication.get(sender, b"") + data


class Relays:
    """The relays of a recording; closing them ends their connections."""

    def __init__(self, recording: GoldenRecording) -> None:
        self.recording = recording
        self._relays: dict[tuple[str, str], _Relay] = {}
        self._lock = threading.Lock()

    def address(self, role: str, target: str, upstream: str, *, is_replication: bool = False) -> str:
        """Return the address of ``role``'s relay to ``target``, whose own address is ``upstream``."""
        with self._lock:
            relay = self._relays.get((role, upstream))
            if relay is None:
                relay = self._relays[role, upstream] = _Relay(self, role, target, upstream, is_replication)
            return relay.address

    def close(self) -> None:
        for relay in self._relays.values():
            relay.close()

    def rewritten(self, role: str, code: int, response: RemotingCommand, data: bytes) -> bytes:
        """Return the bytes to pass on for a response."""
        if response.code != ResponseCode.SUCCESS:
            return data
        if code in ROUTE_CODES and role not in _PLAIN_ROUTES:
            names = broker_addresses(code, response)
            fronts = {
                address: self.address(role, SLAVE if name[-2:] == "-1" else BROKER, address)
                for address, name in names.items()
            }
            return with_addresses(response, fronts)
        if code == RequestCode.REGISTER_BROKER and role == SLAVE:
            return self._with_master(response)
        return data

    def _with_master(self, response: RemotingCommand) -> bytes:
        fields = dict(response.ext)
        for name in _ADDRESS_FIELDS:
            upstream = fields.get(name)
            if isinstance(upstream, str) and upstream:
                is_replication = name == "haServerAddr"
                fields[name] = self.address(SLAVE, BROKER, upstream, is_replication=is_replication)
        response.ext_fields = fields
        return encode_frame(response, response.serialize_type)


class _Relay:
    """Listens for one role in front of one server; before a broker also at the port of its VIP channel."""

    def __init__(self, relays: Relays, role: str, target: str, upstream: str, is_replication: bool) -> None:
        self._relays = relays
        self._role = role
        self._target = target
        self._is_replication = is_replication
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        host, port = parse_address(upstream)
        steps = (0, _VIP_STEP) if target in (BROKER, SLAVE) and not is_replication else (0,)
        listeners = _listen(*steps)
        self.address = format_address(listeners[0].getsockname()[:2])
        for listener, step in zip(listeners, steps, strict=True):
            self._sockets.append(listener)
            threading.Thread(target=self._accept, args=(listener, (host, port + step)), daemon=True).start()

    def close(self) -> None:
        with self._lock:
            for each in self._sockets:
                # A thread may be blocked in this socket.
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()

    def _accept(self, listener: socket.socket, upstream: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection(upstream)
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._sockets += (client, server)
                self._join(client, server)

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        out = _Direction(self._relays, self._role, self._target, client, server)
        back = _Direction(self._relays, self._target, self._role, server, client)
        out.opposite, back.opposite = back, out
        back.client_role = self._role
        for direction in (out, back):
            run = direction.pass_bytes if self._is_replication else direction.pass_frames
            threading.Thread(target=run, daemon=True).start()


def _listen(*steps: int) -> list[socket.socket]:
    """Return listeners at a free port and at the distances ``steps`` from it."""
    while True:
        port = free_port(*steps)
        listeners: list[socket.socket] = []
        try:
            listeners += (socket.create_server(("127.0.0.1", port + step)) for step in steps)
        except OSError:
            for listener in listeners:
                listener.close()
            continue
        return listeners


class _Direction:
    """One direction of one connection."""

    opposite: _Direction

    def __init__(
        self, relays: Relays, sender: str, receiver: str, source: socket.socket, target: socket.socket
    ) -> None:
        self._relays = relays
        self._sender = sender
        self._receiver = receiver
        self._source = source
        self._target = target
        # Requests without an answer yet, code by opaque; None for a request of RewindMQ's own code.
        self._asked: dict[int, int | None] = {}
        # Role of the side that opened the connection; set in the direction back to that side.
        self.client_role = ""

    def pass_frames(self) -> None:
        cutter = FrameCutter()
        for data in self._chunks():
            for piece in cutter.feed(data):
                out = piece.data if piece.command is None else self._note(piece.command, piece.data)
                with contextlib.suppress(OSError):
                    self._target.sendall(out)

    def pass_bytes(self) -> None:
        for data in self._chunks():
            self._relays.recording.add_replication(self._sender, data)
            with contextlib.suppress(OSError):
                self._target.sendall(data)

    def _chunks(self) -> Iterator[bytes]:
        with contextlib.suppress(OSError):
            while data := self._source.recv(_CHUNK):
                yield data
        with contextlib.suppress(OSError):
            self._target.shutdown(socket.SHUT_WR)

    def _note(self, command: RemotingCommand, data: bytes) -> bytes:
        outcome = None
        if command.is_response:
            code = self.opposite._asked.pop(command.opaque, None)
            if code is None:
                return data
            form, outcome = "response", int(command.code)
        else:
            code = int(command.code)
            form = "oneway" if command.is_oneway else "request"
            is_ours = command.language == LanguageCode.PYTHON
            if form == "request":
                self._asked[command.opaque] = None if is_ours else code
            if is_ours:
                return data
        recording = self._relays.recording
        recording.add(Captured(self._sender, self._receiver, code, form, outcome, command, data))
        if form == "response" and self.client_role:
            return self._relays.rewritten(self.client_role, code, command, data)
        return data
