"""Shared by the reset modes: targets, checks, and the points that they report."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping
from typing import Final, TypeVar

from rewindmq.broker.limits import CONSUMERS_PER_SLICE, QUEUES_PER_SLICE, SEARCHES_PER_SLICE
from rewindmq.broker.reset.build import Resets
from rewindmq.broker.store.model import Boundary
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.slices.run import run_at_once
from rewindmq.protocol.reset_mode import ResetMode

T = TypeVar("T")

_NOT_GIVEN: Final = (None, -1)


def known_topic(resets: Resets, header: ResetOffsetRequestHeader) -> TopicConfig:
    """Return the topic's settings.

    Raises:
        RequestError: TOPIC_NOT_EXIST (17), with the remark of 5.3.3.
    """
    topic = resets.tables.topics.find(header.topic)
    if topic is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist")
    return topic


def unknown_group(header: ResetOffsetRequestHeader) -> RequestError:
    """Return the error SUBSCRIPTION_GROUP_NOT_EXIST (26), with the remark of 5.3.3."""
    return RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist")


def no_queues() -> RequestError:
    """Return the error SYSTEM_ERROR (1), with the remark of 5.3.3."""
    return RequestError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")


def time_target(resets: Resets, header: ResetOffsetRequestHeader, queue_id: int, *, to_the_end: bool) -> int:
    """Return the offset for the request's timestamp in a queue."""
    if to_the_end:
        return resets.store.max_offset(header.topic, queue_id)
    return resets.store.search_offset(
        header.topic, queue_id, header.timestamp, Boundary.LOWER, resets.profile.search_mode
    )


def time_targets(
    resets: Resets, header: ResetOffsetRequestHeader, queues: int, *, to_the_end: bool
) -> Generator[None, None, dict[int, int]]:
    """Return the offsets for the request's timestamp in the first ``queues`` queues, by queue id.

    Yields after ``SEARCHES_PER_SLICE`` queues.
    """
    targets = {}
    for queue_id in range(queues):
        if queue_id % SEARCHES_PER_SLICE == 0 < queue_id:
            yield
        targets[queue_id] = time_target(resets, header, queue_id, to_the_end=to_the_end)
    return targets


def queue_target(resets: Resets, header: ResetOffsetRequestHeader, *, slack: int) -> int:
    """Return the offset for a reset of the single queue ``header.queue_id``.

    Args:
        slack: how far beyond the queue's end the offset may lie.

    Raises:
        RequestError: SYSTEM_ERROR (1), the offset is out of range, with the remark of 5.3.3.
    """
    queue_id, offset = header.queue_id, header.offset
    if offset is None or not names_offset(header):
        return time_target(resets, header, queue_id, to_the_end=header.timestamp < 0)
    first = resets.store.min_offset(header.topic, queue_id)
    last = resets.store.max_offset(header.topic, queue_id)
    if not first <= offset <= last + slack:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"Target offset {offset} not in consume queue range [{first}-{last}]",
        )
    return offset


def names_offset(header: ResetOffsetRequestHeader) -> bool:
    """Return True if the request has an offset, not only a time."""
    return header.offset not in _NOT_GIVEN


def refuse_fenced(resets: Resets, header: ResetOffsetRequestHeader) -> None:
    """Refuse a reset in another mode if the group was reset in fenced mode in the topic.

    Raises:
        RequestError: SYSTEM_ERROR (1); after such a reset, the broker would refuse the consumers' commits.
    """
    if resets.offsets.table.has_epochs(header.group, header.topic):
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"group {header.group} was reset in fenced mode in topic {header.topic}; no other mode works"
            f" then: use --mode {ResetMode.FENCED} (resetMode={ResetMode.FENCED})",
        )


def in_slices(
    resets: Resets, header: ResetOffsetRequestHeader, slices: Generator[None, None, T]
) -> T | Awaitable[T]:
    """Run a reset, or a part of it: at once if queues and consumers are few, else in slices.

    A turn of the loop runs one slice.
    Other requests run between two slices. So the last slice must check again what they may have changed, and
    make the whole change.
    """
    topic, group = resets.tables.topics.find(header.topic), resets.clients.consumers.find(header.group)
    queues = 0 if topic is None else max(topic.read_queue_nums, topic.write_queue_nums)
    consumers = 0 if group is None else len(group.channels)
    if queues <= SEARCHES_PER_SLICE and consumers <= CONSUMERS_PER_SLICE:
        return run_at_once(slices)
    return resets.large_responses.run(slices)


def reset_body(
    resets: Resets, topic: str, offsets: Mapping[int, int]
) -> Generator[None, None, ResetOffsetBody]:
    """Return queue ids and offsets as a body. Yields after ``QUEUES_PER_SLICE`` queues."""
    body = ResetOffsetBody()
    for number, (queue_id, offset) in enumerate(offsets.items(), 1):
        body.offset_table[MessageQueue(topic, resets.config.broker_name, queue_id)] = offset
        if number % QUEUES_PER_SLICE == 0:
            yield
    return body


def probe_targets(resets: Resets, header: ResetOffsetRequestHeader, offsets: Mapping[int, int]) -> None:
    """Report ``RESET_TARGETS_COMPUTED`` to the probe."""
    if resets.runtime.probe is not None:
        # Plain values, because the probe may write them to a file.
        targets = [[resets.config.broker_name, *entry] for entry in offsets.items()]
        details = {"group": header.group, "topic": header.topic, "targets": targets}
        resets.runtime.probe(Point.RESET_TARGETS_COMPUTED, details)


def probe_reset(
    resets: Resets,
    header: ResetOffsetRequestHeader,
    mode: ResetMode,
    queue_id: int,
    offset: int,
    stored: int,
    epoch: int,
) -> None:
    """Report ``OFFSET_RESET`` to the probe.

    Args:
        stored: the offset before the reset.
        epoch: the epoch after the reset.
    """
    if resets.runtime.probe is not None:
        details = {
            "group": header.group,
            "topic": header.topic,
            "queue_id": queue_id,
            "offset": offset,
            "stored": stored,
            "epoch": epoch,
            "mode": str(mode),
        }
        resets.runtime.probe(Point.OFFSET_RESET, details)
