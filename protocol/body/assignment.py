"""Queues that a broker assigns to a consumer: bodies of QUERY_ASSIGNMENT (400); 5.x only."""

from __future__ import annotations

from enum import StrEnum

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.message_queue import MessageQueue


class MessageRequestMode(StrEnum):
    """How a consumer of a group reads a topic."""

    PULL = "PULL"
    POP = "POP"


class QueryAssignmentRequestBody(RemotingBody):
    """The consumer that asks for its queues of a topic.

    Attributes:
        strategy_name: ``AVG`` or ``AVG_BY_CIRCLE``; RocketMQ's brokers know no other strategy.
    """

    topic: str
    consumer_group: str
    message_model: MessageModel
    client_id: str | None = None
    strategy_name: str | None = None


class MessageQueueAssignment(RemotingBody):
    """A queue that the consumer shall read.

    Attributes:
        message_queue: the queue id -1 means all queues of the topic at the broker; only with POP.
    """

    message_queue: MessageQueue
    mode: MessageRequestMode = MessageRequestMode.PULL


class QueryAssignmentResponseBody(RemotingBody):
    """The consumer's queues; None: the broker cannot tell, and the consumer keeps the queues it has."""

    message_queue_assignments: list[MessageQueueAssignment] | None = None
