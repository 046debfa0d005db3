"""Queue locks of orderly consumers: bodies of 41 and 42 (docs/spec/protocol.md 5.7)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.message_queue import MessageQueue


class LockBatchRequestBody(RemotingBody):
    """Queues that a client locks, LOCK_BATCH_MQ (41)."""

    consumer_group: str
    client_id: str
    mq_set: set[MessageQueue] = field(default_factory=set)
    only_this_broker: bool | None = None


class UnlockBatchRequestBody(RemotingBody):
    """Queues that a client unlocks, UNLOCK_BATCH_MQ (42)."""

    consumer_group: str
    client_id: str
    mq_set: set[MessageQueue] = field(default_factory=set)
    only_this_broker: bool | None = None


class LockBatchResponseBody(RemotingBody):
    """The requested queues that the client has locked now."""

    lock_ok_mq_set: set[MessageQueue] = field(name="lockOKMQSet", default_factory=set)
