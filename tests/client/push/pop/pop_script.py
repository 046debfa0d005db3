"""A scripted broker that assigns all its queues for POP, and records what becomes of the messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rewindmq import PushConsumer
from rewindmq.protocol.body.assignment import (
    MessageQueueAssignment,
    MessageRequestMode,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from rewindmq.protocol.body.batch_ack import BatchAckMessageRequestBody
from rewindmq.protocol.body.group import SetMessageRequestModeRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.pop.bit_set import decode_bits, positions
from rewindmq.protocol.pop.extra_info import parse_extra_info
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.client_records import record
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import consumer_of, play_scripted

POP = MessageRequestMode.POP
PULL = MessageRequestMode.PULL
ALL_QUEUES = MessageQueue("T", "broker-a", -1)


class PopScript:
    """Hands out prepared responses to POP_MESSAGE, one for each request, then none for 15 s each.

    Attributes:
        assigned: the queues and modes of QUERY_ASSIGNMENT (400); None: the broker cannot tell.
        modes: the modes that SET_MESSAGE_REQUEST_MODE (401) has set.
        responses: the next responses to POP_MESSAGE.
        acked: acknowledged (topic, queue offset).
        changes: (second, queue offset, new invisible ms) of CHANGE_MESSAGE_INVISIBLETIME.
        pops: the headers of POP_MESSAGE.
    """

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.assigned: list[MessageQueueAssignment] | None = [MessageQueueAssignment(ALL_QUEUES, POP)]
        self.modes: list[str] = []
        self.responses: list[RemotingCommand] = []
        self.acked: list[tuple[str, int]] = []
        self.changes: list[tuple[float, int, int]] = []
        self.pops: list[PopMessageRequestHeader] = []
        broker.handlers |= {
            RequestCode.QUERY_ASSIGNMENT: self._assignment,
            RequestCode.SET_MESSAGE_REQUEST_MODE: self._set_mode,
            RequestCode.POP_MESSAGE: self._pop,
            RequestCode.ACK_MESSAGE: self._ack,
            RequestCode.BATCH_ACK_MESSAGE: self._batch_ack,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: self._change,
        }

    def asked(self, code: RequestCode) -> int:
        """Return how many requests of this code came."""
        return len(self.broker.times(code))

    def add(self, *offsets: int, invisible: int = 60_000, properties: bytes = b"", times: int = 0) -> None:
        """Prepare a response with messages at these offsets of queue 0."""
        stream = b"".join(_record(offset, properties, times) for offset in offsets)
        listed = ",".join(map(str, offsets))
        self.responses.append(self.response(stream, invisible, f"0 0 {offsets[0]}", f"0 0 {listed}"))

    def response(
        self, stream: bytes, invisible: int, starts: str | None, offsets: str | None
    ) -> RemotingCommand:
        """Return a response to POP_MESSAGE with these records."""
        now_ms = self.broker.runtime.clock.now_ms()
        header = PopMessageResponseHeader(now_ms, invisible, 3, 0, starts, offsets)
        return RemotingCommand(ResponseCode.SUCCESS, header, stream)

    def _assignment(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        query = decode_body(request, QueryAssignmentRequestBody)
        if query.topic != "T":
            retry = MessageQueueAssignment(MessageQueue(query.topic, "broker-a", 0), PULL)
            return RemotingCommand(ResponseCode.SUCCESS, body=QueryAssignmentResponseBody([retry]))
        return RemotingCommand(ResponseCode.SUCCESS, body=QueryAssignmentResponseBody(self.assigned))

    def _set_mode(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        mode = decode_body(request, SetMessageRequestModeRequestBody).mode
        self.modes.append(mode)
        self.assigned = [MessageQueueAssignment(ALL_QUEUES, MessageRequestMode(mode))]
        return RemotingCommand(ResponseCode.SUCCESS)

    def _pop(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        header = request.decode_header(PopMessageRequestHeader)
        self.pops.append(header)
        if self.responses:
            return self.responses.pop(0)
        empty = RemotingCommand(ResponseCode.POLLING_TIMEOUT, PopMessageResponseHeader(0, 0, 0, 0))
        self.broker.runtime.timers.call_later(header.poll_time / 1_000, connection.reply, request, empty)
        return None

    def _ack(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = request.decode_header(AckMessageRequestHeader)
        assert parse_extra_info(header.extra_info).offset == header.offset
        self.acked.append((header.topic, header.offset))
        return RemotingCommand(ResponseCode.SUCCESS)

    def _batch_ack(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        for batch in decode_body(request, BatchAckMessageRequestBody).acks:
            found = positions(decode_bits(batch.bit_set or ""))
            self.acked += [(batch.topic or "", batch.start_offset + bit) for bit in found]
        return RemotingCommand(ResponseCode.SUCCESS)

    def _change(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        header = request.decode_header(ChangeInvisibleTimeRequestHeader)
        clock = self.broker.runtime.clock
        self.changes.append((round(clock.monotonic(), 1), header.offset, header.invisible_time))
        answer = ChangeInvisibleTimeResponseHeader(clock.now_ms(), header.invisible_time, 5)
        return RemotingCommand(ResponseCode.SUCCESS, answer)


PopScene = Callable[[World, PopScript, Runtime], Awaitable[None]]


def play_pop(scene: PopScene) -> None:
    """Run a scene with a script and the runtime of a client, under virtual time."""

    async def run(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        await scene(world, PopScript(broker), runtime)

    play_scripted(run, topics={"T": 4, "%RETRY%G": 1})


def popping(script: PopScript, runtime: Runtime, **options: Any) -> PushConsumer:
    """Return a consumer of group G that pops topic T."""
    return consumer_of(script.broker, runtime, Profile.V53, **{"request_mode": "pop", **options})


def _record(offset: int, properties: bytes, times: int) -> bytes:
    return record(offset, b"%d" % offset, properties=properties, reconsume_times=times)


def bodies(messages: Sequence[Any]) -> list[int]:
    """Return the offsets that the bodies name."""
    return [int(message.body) for message in messages]
