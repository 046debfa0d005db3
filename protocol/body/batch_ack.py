"""Body of BATCH_ACK_MESSAGE (200151), RocketMQ 5.5.1 ``BatchAckMessageRequestBody``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class BatchAck(RemotingBody):
    """Messages of one POP of one queue that the group has consumed.

    Attributes:
        topic: the topic that was popped, also if the messages came from its retry topic.
        retry: the topic type of the handles, ``protocol/pop/topics.py``.
        bit_set: base64 of a Java ``BitSet``; bit n is the message at ``start_offset`` + n.
    """

    aliases: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "consumerGroup": "c",
            "topic": "t",
            "retry": "r",
            "startOffset": "so",
            "queueId": "q",
            "reviveQueueId": "rq",
            "popTime": "pt",
            "invisibleTime": "it",
            "bitSet": "b",
        }
    )

    bit_set: str | None = field(name="b", default=None)
    consumer_group: str | None = field(name="c", default=None)
    invisible_time: Int64 = field(name="it", default=0)
    pop_time: Int64 = field(name="pt", default=0)
    queue_id: Int32 = field(name="q", default=0)
    retry: str | None = field(name="r", default=None)
    revive_queue_id: Int32 = field(name="rq", default=0)
    start_offset: Int64 = field(name="so", default=0)
    topic: str | None = field(name="t", default=None)


class BatchAckMessageRequestBody(RemotingBody):
    """Acks of several POPs, all answered at once."""

    acks: list[BatchAck] = field(default_factory=list)
    broker_name: str | None = None
