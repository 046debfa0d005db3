"""Frames of one turn of the event loop are sent in one write."""

from __future__ import annotations

import asyncio
from typing import Any

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.remoting.connection import Connection
from tests.protocol.remoting.remoting_stage import RemotingStage


class RecordingTransport(asyncio.Transport):
    """Keeps every write apart."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.1", 1), "sockname": ("10.0.0.2", 2)})
        self.writes: list[list[RemotingCommand]] = []

    def write(self, data: Any) -> None:
        self.writes.append(FrameDecoder().feed(bytes(data)))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limits = (low, high)

    def is_closing(self) -> bool:
        return False


def frames(*commands: RemotingCommand) -> bytes:
    return b"".join(encode_frame(command, SerializeType.MSGPACK) for command in commands)


def echo(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(0, body=request.body)


async def test_the_answers_to_one_read_leave_in_one_write(stage: RemotingStage) -> None:
    transport = RecordingTransport()
    held: list[RemotingCommand] = []
    connection = stage.connection(transport, {10: echo, 11: lambda c, r: held.append(r)})
    connection.data_received(frames(*(RemotingCommand(10, opaque=n) for n in range(50))))
    assert [[answer.opaque for answer in write] for write in transport.writes] == [list(range(50))]
    # A handler that answers earlier requests adds to the same write.
    connection.data_received(frames(RemotingCommand(11, opaque=50), RemotingCommand(11, opaque=51)))
    assert len(transport.writes) == 1
    for request in held:
        connection.reply(request, RemotingCommand(0))
    connection.data_received(frames(RemotingCommand(10, opaque=52)))
    assert [[answer.opaque for answer in write] for write in transport.writes[1:]] == [[50, 51, 52]]


async def test_large_answers_to_one_read_leave_in_one_write_up_to_its_limit(stage: RemotingStage) -> None:
    transport = RecordingTransport()
    connection = stage.connection(transport, {10: lambda c, r: RemotingCommand(0, body=bytes(200_000))})
    connection.data_received(frames(*(RemotingCommand(10, opaque=n) for n in range(8))))
    assert [[answer.opaque for answer in write] for write in transport.writes] == [[0, 1, 2, 3, 4, 5], [6, 7]]


async def test_the_requests_of_one_turn_leave_in_one_write(stage: RemotingStage) -> None:
    transport = RecordingTransport()
    connection = stage.connection(transport, {})
    calls = [connection.invoke(RemotingCommand(10), 60.0) for _ in range(20)]
    connection.send_oneway(RemotingCommand(11))
    assert transport.writes == []
    await asyncio.sleep(0)
    assert [[request.code for request in write] for write in transport.writes] == [[10] * 20 + [11]]
    answers = [RemotingCommand(0, opaque=request.opaque, flag=1) for request in transport.writes[0][:20]]
    connection.data_received(frames(*reversed(answers)))
    assert [(await call).opaque for call in calls] == list(range(1, 21))
