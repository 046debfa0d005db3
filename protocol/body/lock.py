"""Queue locks of orderly consumers: bodies of 41 and 42 (docs/spec/protocol.md 5.7)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.message_queue import MessageQueue


class LockBatchRequestBody(RemotingBody):
    """Queues a client wants to hold, 41."""

    consumer_group: str
    client_id: str
    mq_set: set[MessageQueue] = field(default_factory=set)
    only_this_broker: bool | None = None


class UnlockBatchRequestBody(RemotingBody):
    """Queues a client lets go, 42."""

    consumer_group: str
    client_id: str
    mq_set: set[MessageQueue] = field(default_factory=set)
    only_this_broker: bool | None = None


class LockBatchResponseBody(RemotingBody):
    """Of the queues asked for, those the caller holds now."""

    lock_ok_mq_set: set[MessageQueue] = field(name="lockOKMQSet", default_factory=set)
