"""The records of a revive topic: checkpoints and acks, as JSON texts (RocketMQ 5.5.1 ``store/pop``).

A checkpoint says what a POP delivered from one queue. Acks name the checkpoint by topic, queue, start
offset, group, POP time and broker. The texts equal, byte by byte, those that fastjson writes for RocketMQ.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.integers import Int32, Int64
from rewindmq.protocol.pop.topics import ACK_TAG, BATCH_ACK_TAG, CK_TAG

Int8 = Annotated[int, msgspec.Meta(ge=-(2**7), le=2**7 - 1)]

# More often than any checkpoint is put back.
_MANY_TIMES: Final = 127
# The long names that older brokers wrote in acks.
_LONG_NAMES: Final = {
    "ackOffset": "ao",
    "ackOffsetList": "aol",
    "startOffset": "so",
    "consumerGroup": "c",
    "topic": "t",
    "queueId": "q",
    "popTime": "pt",
    "brokerName": "bn",
}


class PopRecordError(RewindMQError):
    """A record of a revive topic that cannot be read."""


class PopCheckPoint(msgspec.Struct, kw_only=True, gc=False):
    """What one POP delivered from one queue.

    Attributes:
        start_offset: the queue offset at which the POP began.
        pop_time, invisible_time: ms; their sum is ``revive_time``.
        bit_map: the messages that are acknowledged, one bit each; 0 in every stored record.
        num: the number of messages.
        offset_diffs: the offset of each message from ``start_offset``; None in old records, whose messages
            follow one another.
        topic: the real topic, which may be a retry topic.
        revive_offset: the record's own queue offset, set by its reader.
        re_put_times: how often the checkpoint was put back, as a number in text; None at first.
        suspend: the messages come again without counting an attempt.
    """

    topic: str | None = msgspec.field(name="t", default=None)
    consumer_group: str | None = msgspec.field(name="c", default=None)
    queue_id: Int32 = msgspec.field(name="q", default=0)
    start_offset: Int64 = msgspec.field(name="so", default=0)
    pop_time: Int64 = msgspec.field(name="pt", default=0)
    invisible_time: Int64 = msgspec.field(name="it", default=0)
    broker_name: str | None = msgspec.field(name="bn", default=None)
    num: Int8 = msgspec.field(name="n", default=0)
    offset_diffs: list[Int32] | None = msgspec.field(name="d", default=None)
    bit_map: Int32 = msgspec.field(name="bm", default=0)
    revive_offset: Int64 = msgspec.field(name="ro", default=0)
    re_put_times: str | None = msgspec.field(name="rp", default=None)
    suspend: bool = msgspec.field(name="sp", default=False)

    @property
    def revive_time(self) -> int:
        """When the messages are visible again, in ms."""
        return self.pop_time + self.invisible_time

    @property
    def times_put_back(self) -> int:
        """``re_put_times`` as a number; 127 if it is none."""
        text = self.re_put_times
        if text is None:
            return 0
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else _MANY_TIMES

    @property
    def offsets(self) -> list[int]:
        """The queue offset of each message."""
        if not self.offset_diffs:
            return list(range(self.start_offset, self.start_offset + self.num))
        return [self.start_offset + diff for diff in self.offset_diffs]

    def index_of(self, offset: int) -> int:
        """Return the place of the message with this queue offset, -1 if the checkpoint has none."""
        diff = offset - self.start_offset
        if not self.offset_diffs:
            return diff if 0 <= diff < self.num else -1
        return self.offset_diffs.index(diff) if diff >= 0 and diff in self.offset_diffs else -1

    def encode(self) -> bytes:
        """Return the record."""
        diffs = "" if self.offset_diffs is None else f'"d":[{",".join(map(str, self.offset_diffs))}],'
        times = "" if self.re_put_times is None else f'"rp":{_text(self.re_put_times)},'
        return (
            f'{{"bm":{self.bit_map},{_member("bn", self.broker_name)}{_member("c", self.consumer_group)}'
            f'{diffs}"it":{self.invisible_time},"n":{self.num},"pt":{self.pop_time},"q":{self.queue_id},'
            f'"reviveTime":{self.revive_time},"ro":{self.revive_offset},{times}"so":{self.start_offset},'
            f'"sp":{"true" if self.suspend else "false"}{_last(self.topic)}}}'
        ).encode()

    def unique_id(self) -> str:
        """Return the message's UNIQ_KEY."""
        return (
            f"{self.topic}@{self.queue_id}@{self.start_offset}@{self.consumer_group}@{self.pop_time}"
            f"@{self.broker_name}@{CK_TAG}"
        )


class AckMsg(msgspec.Struct, kw_only=True, gc=False):
    """The group has consumed one message of a checkpoint.

    Attributes:
        ack_offset: the message's queue offset; -1 in a batch.
        start_offset, pop_time: those of the checkpoint.
    """

    topic: str | None = msgspec.field(name="t", default=None)
    consumer_group: str | None = msgspec.field(name="c", default=None)
    queue_id: Int32 = msgspec.field(name="q", default=0)
    ack_offset: Int64 = msgspec.field(name="ao", default=0)
    start_offset: Int64 = msgspec.field(name="so", default=0)
    pop_time: Int64 = msgspec.field(name="pt", default=0)
    broker_name: str | None = msgspec.field(name="bn", default=None)

    def encode(self) -> bytes:
        """Return the record."""
        return self._encoded("")

    def _encoded(self, offsets: str) -> bytes:
        names = f"{_member('bn', self.broker_name)}{_member('c', self.consumer_group)}"
        return (
            f'{{"ao":{self.ack_offset},{offsets}{names}"pt":{self.pop_time},"q":{self.queue_id},'
            f'"so":{self.start_offset}{_last(self.topic)}}}'
        ).encode()

    def unique_id(self) -> str:
        """Return the message's UNIQ_KEY; that of a batch, too, in which the offset is -1."""
        return (
            f"{self.topic}@{self.queue_id}@{self.ack_offset}@{self.consumer_group}@{self.pop_time}"
            f"@{self.broker_name}@{ACK_TAG}"
        )


class BatchAckMsg(AckMsg, kw_only=True, gc=False):
    """The group has consumed several messages of a checkpoint."""

    ack_offsets: list[Int64] = msgspec.field(name="aol", default_factory=list)

    def encode(self) -> bytes:
        """Return the record."""
        return self._encoded(f'"aol":[{",".join(map(str, self.ack_offsets))}],')


_DECODE_CHECK_POINT: Final = msgspec.json.Decoder(PopCheckPoint, strict=False).decode
_DECODE_ACK: Final = msgspec.json.Decoder(AckMsg, strict=False).decode
_DECODE_BATCH: Final = msgspec.json.Decoder(BatchAckMsg, strict=False).decode
_DECODE_FIELDS: Final = msgspec.json.Decoder(dict[str, Any]).decode


def decode_record(tag: str | None, body: bytes) -> PopCheckPoint | AckMsg | None:
    """Return the record of a revive topic's message; None for a message with another tag.

    Absent fields are 0 or None.

    Raises:
        PopRecordError: the body is no record, or a number in it is out of range.
    """
    try:
        if tag == CK_TAG:
            return _DECODE_CHECK_POINT(body)
        if tag not in (ACK_TAG, BATCH_ACK_TAG):
            return None
        if b"ackOffset" in body:
            fields = {_LONG_NAMES.get(name, name): value for name, value in _DECODE_FIELDS(body).items()}
            return msgspec.convert(fields, AckMsg if tag == ACK_TAG else BatchAckMsg, strict=False)
        return (_DECODE_ACK if tag == ACK_TAG else _DECODE_BATCH)(body)
    except DECODE_FAILURES as error:
        raise PopRecordError(f"a record with tag {tag} cannot be read: {error}") from None


def _text(value: str) -> str:
    return msgspec.json.encode(value).decode()


def _member(name: str, value: str | None) -> str:
    return "" if value is None else f'"{name}":{_text(value)},'


def _last(topic: str | None) -> str:
    return "" if topic is None else f',"t":{_text(topic)}'
