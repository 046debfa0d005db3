"""Requests of POP consumption, as a raw client sends them; topic T and group G unless said otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewindmq.protocol.body.batch_ack import BatchAck, BatchAckMessageRequestBody
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    NotificationRequestHeader,
    PeekMessageRequestHeader,
    PollingInfoRequestHeader,
    PollingInfoResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.pop.bit_set import encode_bits
from rewindmq.protocol.pop.extra_info import ExtraInfo, build_extra_info, parse_extra_info
from rewindmq.protocol.pop.offset_info import parse_msg_offset_info, parse_start_offset_info
from rewindmq.protocol.pop.topics import real_topic
from tests.support.peer import Peer


@dataclass(frozen=True)
class Lent:
    """A popped message with its handle and where it is stored."""

    message: MessageExt
    handle: str
    topic: str
    queue_id: int
    offset: int

    @property
    def body(self) -> bytes:
        return self.message.body

    @property
    def attempt(self) -> int:
        return self.message.reconsume_times + 1


@dataclass(frozen=True)
class Popped:
    """A response to POP_MESSAGE."""

    response: RemotingCommand
    messages: list[Lent]

    @property
    def header(self) -> PopMessageResponseHeader:
        return self.response.decode_header(PopMessageResponseHeader)

    @property
    def bodies(self) -> list[bytes]:
        return [lent.body for lent in self.messages]


async def pop(
    peer: Peer,
    topic: str = "T",
    *,
    group: str = "G",
    queue_id: int = -1,
    count: int = 32,
    invisible: int = 10_000,
    poll: int = 0,
    init_mode: int = 0,
    exp: str | None = None,
    exp_type: str | None = None,
    **fields: Any,
) -> Popped:
    """Pop messages; invisible and poll time in ms."""
    header = PopMessageRequestHeader(
        group, topic, queue_id, count, invisible, poll, 0, init_mode, exp_type, exp, **fields
    )
    response = await peer.ask(RequestCode.POP_MESSAGE, header)
    return Popped(response, lent_messages(response, group, topic))


def lent_messages(response: RemotingCommand, group: str, topic: str) -> list[Lent]:
    """Return the messages as 5.5.0's client makes their handles (``MQClientAPIImpl#processPopResponse``)."""
    if response.code != 0:
        return []
    header = response.decode_header(PopMessageResponseHeader)
    starts = parse_start_offset_info(header.start_offset_info)
    offsets = parse_msg_offset_info(header.msg_offset_info)
    found: list[Lent] = []
    for message in decode_records(bytes(response.body)):  # type: ignore[arg-type]
        handle = message.properties.get("POP_CK")
        if handle is None:
            queue = "0", message.queue_id
            assert message.queue_offset in offsets[queue]
            handle = build_extra_info(
                starts[queue],
                header.pop_time,
                header.invisible_time,
                header.revive_qid,
                message.topic,
                "broker-a",
                message.queue_id,
                message.queue_offset,
            )
        info = parse_extra_info(handle)
        stored = real_topic(topic, group, info.topic_type)
        found.append(Lent(message, handle, stored, message.queue_id, message.queue_offset))
    return found


async def ack(peer: Peer, lent: Lent, group: str = "G", **fields: Any) -> RemotingCommand:
    """Acknowledge one message; fields replace those of the request."""
    values: dict[str, Any] = {
        "consumer_group": group,
        "topic": lent.topic,
        "queue_id": lent.queue_id,
        "extra_info": lent.handle,
        "offset": lent.offset,
    }
    return await peer.ask(RequestCode.ACK_MESSAGE, AckMessageRequestHeader(**(values | fields)))


async def ack_all(peer: Peer, messages: Sequence[Lent], group: str = "G") -> None:
    for lent in messages:
        (await ack(peer, lent, group)).require_success()


async def batch_ack(
    peer: Peer, messages: Sequence[Lent], group: str = "G", topic: str = "T", **fields: Any
) -> RemotingCommand:
    """Acknowledge messages in one request, those of a checkpoint together."""
    batches: dict[tuple[ExtraInfo, int], list[int]] = {}
    for lent in messages:
        # Of the handle, only what the messages of a checkpoint share.
        info = parse_extra_info(lent.handle)._replace(queue_id=None, offset=None, commit_log_offset=None)
        batches.setdefault((info, lent.queue_id), []).append(lent.offset)
    acks = [
        BatchAck(
            bit_set=encode_bits(offset - info.start_offset for offset in offsets),
            consumer_group=group,
            topic=topic,
            start_offset=info.start_offset,
            pop_time=info.pop_time,
            invisible_time=info.invisible_time,
            revive_queue_id=info.revive_queue_id,
            retry=info.topic_type,
            queue_id=queue_id,
        )
        for (info, queue_id), offsets in batches.items()
    ]
    body = BatchAckMessageRequestBody(acks, **{"broker_name": "broker-a", **fields})
    return await peer.ask(RequestCode.BATCH_ACK_MESSAGE, body=body)


async def change(
    peer: Peer, lent: Lent, invisible: int, group: str = "G", **fields: Any
) -> tuple[RemotingCommand, Lent]:
    """Change the invisible time; return the response and the message with its new handle."""
    values: dict[str, Any] = {
        "consumer_group": group,
        "topic": lent.topic,
        "queue_id": lent.queue_id,
        "extra_info": lent.handle,
        "offset": lent.offset,
        "invisible_time": invisible,
    }
    header = ChangeInvisibleTimeRequestHeader(**(values | fields))
    response = await peer.ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
    if response.code != 0:
        return response, lent
    answer = response.decode_header(ChangeInvisibleTimeResponseHeader)
    handle = build_extra_info(
        lent.offset,
        answer.pop_time,
        answer.invisible_time,
        answer.revive_qid,
        lent.topic,
        "broker-a",
        lent.queue_id,
        lent.offset,
    )
    return response, Lent(lent.message, handle, lent.topic, lent.queue_id, lent.offset)


async def peek(
    peer: Peer, topic: str = "T", *, group: str = "G", queue_id: int = -1, count: int = 32
) -> RemotingCommand:
    return await peer.ask(RequestCode.PEEK_MESSAGE, PeekMessageRequestHeader(group, topic, queue_id, count))


async def notification(
    peer: Peer, topic: str = "T", *, group: str = "G", queue_id: int = -1, poll: int = 0, **fields: Any
) -> RemotingCommand:
    header = NotificationRequestHeader(group, topic, queue_id, poll, 0, **fields)
    return await peer.ask(RequestCode.NOTIFICATION, header)


async def polling_num(peer: Peer, topic: str = "T", *, group: str = "G", queue_id: int = -1) -> int:
    response = await peer.ask(RequestCode.POLLING_INFO, PollingInfoRequestHeader(group, topic, queue_id))
    return response.require_success().decode_header(PollingInfoResponseHeader).polling_num
