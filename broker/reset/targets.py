"""What the modes share: where a queue is to go, who may be reset, and the points they report."""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.model import Boundary
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode

_NOT_GIVEN: Final = (None, -1)


def known_topic(context: BrokerContext, header: ResetOffsetRequestHeader) -> TopicConfig:
    """The topic's settings.

    Raises:
        RequestError: 17, in the words of 5.3.3.
    """
    topic = context.topics.find(header.topic)
    if topic is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
    return topic


def unknown_group(header: ResetOffsetRequestHeader) -> RequestError:
    """26, in the words of 5.3.3."""
    return RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist")


def no_queues() -> RequestError:
    """1, in the words of 5.3.3."""
    return RequestError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")


def time_target(
    context: BrokerContext, header: ResetOffsetRequestHeader, queue_id: int, *, to_the_end: bool
) -> int:
    """The offset the timestamp asks for in a queue."""
    if to_the_end:
        return context.store.max_offset(header.topic, queue_id)
    return context.store.search_offset(
        header.topic, queue_id, header.timestamp, Boundary.LOWER, context.profile.search_mode
    )


def queue_target(context: BrokerContext, header: ResetOffsetRequestHeader, *, slack: int) -> int:
    """The offset that a reset of the single queue ``header.queue_id`` asks for.

    Args:
        slack: how far beyond the queue's end it may lie.

    Raises:
        RequestError: 1, in the words of 5.3.3: the offset given is out of range.
    """
    queue_id, offset = header.queue_id, header.offset
    if offset is None or not names_offset(header):
        return time_target(context, header, queue_id, to_the_end=header.timestamp < 0)
    first = context.store.min_offset(header.topic, queue_id)
    last = context.store.max_offset(header.topic, queue_id)
    if not first <= offset <= last + slack:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"Target offset {offset} not in consume queue range [{first}-{last}]",
        )
    return offset


def names_offset(header: ResetOffsetRequestHeader) -> bool:
    """Whether it asks for an offset and not for a time."""
    return header.offset not in _NOT_GIVEN


def refuse_fenced(context: BrokerContext, header: ResetOffsetRequestHeader) -> None:
    """Keep the other modes off queues with an epoch.

    Raises:
        RequestError: 1; consumers could not commit what such a reset has them do.
    """
    if context.offsets.has_epochs(header.group, header.topic):
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"group {header.group} was reset in fenced mode in topic {header.topic}, which no other mode can"
            f" follow: use --mode {ResetMode.FENCED} (resetMode={ResetMode.FENCED})",
        )


def tell_targets(
    context: BrokerContext, header: ResetOffsetRequestHeader, table: dict[MessageQueue, int]
) -> None:
    """``RESET_TARGETS_COMPUTED``."""
    if context.runtime.probe is not None:
        # Plain values: the probe may write them down.
        targets = [[queue.broker_name, queue.queue_id, offset] for queue, offset in table.items()]
        details = {"group": header.group, "topic": header.topic, "targets": targets}
        context.runtime.probe(Point.RESET_TARGETS_COMPUTED, details)


def tell_reset(
    context: BrokerContext,
    header: ResetOffsetRequestHeader,
    mode: ResetMode,
    queue_id: int,
    offset: int,
    stored: int,
    epoch: int,
) -> None:
    """``OFFSET_RESET``.

    Args:
        stored: the offset before.
        epoch: the new one.
    """
    if context.runtime.probe is not None:
        details = {
            "group": header.group,
            "topic": header.topic,
            "queue_id": queue_id,
            "offset": offset,
            "stored": stored,
            "epoch": epoch,
            "mode": str(mode),
        }
        context.runtime.probe(Point.OFFSET_RESET, details)
