"""A listening socket without descriptors neither spins nor gives up."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Any

import pytest

from rewindmq.protocol.remoting.accept.listener import ACCEPTS_PER_TURN, TcpListener, listen_tcp


class ExhaustedSocket(socket.socket):
    """Fails to accept while told so."""

    def __init__(self) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self.number = 0
        self.attempts = 0
        self.tried = asyncio.Event()

    def accept(self) -> tuple[socket.socket, Any]:
        self.attempts += 1
        self.tried.set()
        if self.number:
            raise OSError(self.number, os.strerror(self.number))
        return super().accept()


class Counted(asyncio.Protocol):
    """Counts what is accepted."""

    def __init__(self) -> None:
        self.made = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made.set()
        transport.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
async def test_without_descriptors_it_waits_and_then_accepts(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    listening, protocol = ExhaustedSocket(), Counted()
    listening.bind(("127.0.0.1", 0))
    listener = TcpListener([listening], lambda: protocol)
    listening.number = number
    async with asyncio.timeout(60):
        _, writer = await asyncio.open_connection(listener.host, listener.port)
        await listening.tried.wait()
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert listening.attempts <= 2
        listening.number = 0
        await protocol.made.wait()
    writer.close()
    listener.close()
    reason = os.strerror(number)
    assert caplog.messages == [f"cannot accept connections at port {listener.port}, they wait: {reason}"]


async def test_a_connection_that_is_gone_already_does_not_end_accepting() -> None:
    listening, protocol = ExhaustedSocket(), Counted()
    listening.bind(("127.0.0.1", 0))
    listener = TcpListener([listening], lambda: protocol)
    listening.number = errno.ECONNABORTED
    async with asyncio.timeout(60):
        _, writer = await asyncio.open_connection(listener.host, listener.port)
        await listening.tried.wait()
        listening.number = 0
        await protocol.made.wait()
    writer.close()
    listener.close()


async def test_a_turn_of_the_loop_accepts_a_few_connections_only() -> None:
    """Else a burst takes every descriptor before the limit of connections can refuse the first."""
    made: list[Counted] = []

    def protocol() -> Counted:
        made.append(Counted())
        return made[-1]

    listener = await listen_tcp(protocol, "127.0.0.1", 0)
    callers = []
    for _ in range(5 * ACCEPTS_PER_TURN):
        callers.append(caller := socket.socket())
        caller.connect((listener.host, listener.port))
    before = -1
    while len(made) < len(callers):
        await asyncio.sleep(0)
        assert len(made) - max(before, 0) <= ACCEPTS_PER_TURN
        before = len(made)
    for caller in callers:
        caller.close()
    listener.close()


async def test_a_closed_listener_accepts_nothing_even_if_it_paused() -> None:
    listening, protocol = ExhaustedSocket(), Counted()
    listening.bind(("127.0.0.1", 0))
    listener = TcpListener([listening], lambda: protocol)
    listening.number = errno.EMFILE
    _, writer = await asyncio.open_connection(listener.host, listener.port)
    await listening.tried.wait()
    listener.close()
    assert not listener._pauses
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(listener.host, listener.port)
