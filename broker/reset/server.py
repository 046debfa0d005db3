"""The server-side reset of RocketMQ 5, with its known flaws S1 to S7.

Specification: docs/spec/reset.md D.9; docs/spec/races.md E.16.

5.3.3 ``AdminBrokerProcessor#resetOffsetInner``: each target is stored at once, in memory, and leaves a mark.
Until a pull consumes the mark, QUERY_CONSUMER_OFFSET (14) returns it and UPDATE_CONSUMER_OFFSET (15) is
ignored. The broker notifies no consumer. It ignores force and language, and does not check a queue id. A
slave refuses the reset.
Changed: a suspended pull that a client of 5.2.0 or later has sent is answered at once. In 5.x it waits until
its time is over (seen at 5.5.0), so the consumer of an idle queue learns of the reset up to 20 s later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator

from rewindmq.broker.reset.build import Resets
from rewindmq.broker.reset.targets import (
    in_slices,
    known_topic,
    no_queues,
    probe_reset,
    probe_targets,
    queue_target,
    refuse_fenced,
    time_targets,
    unknown_group,
)
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables.consumer_offset import NO_OFFSET
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.reset_mode import ResetMode


def reset(
    resets: Resets, request: RemotingCommand, header: ResetOffsetRequestHeader
) -> dict[int, int] | Awaitable[dict[int, int]]:
    """Store the targets and mark their queues, all in one step.

    Returns:
        The targets, by queue id.

    Raises:
        RequestError: TOPIC_NOT_EXIST (17); SUBSCRIPTION_GROUP_NOT_EXIST (26); SYSTEM_ERROR (1), an offset is
            out of range, there is no queue, there are too many offsets, or the group was reset in fenced
            mode.
    """
    return in_slices(resets, header, _reset(resets, header))


def _reset(resets: Resets, header: ResetOffsetRequestHeader) -> Generator[None, None, dict[int, int]]:
    topic = known_topic(resets, header)
    _check_group(resets, header)
    # 5.3.3 accepts an offset one past the end.
    if header.queue_id >= 0:
        targets = {header.queue_id: queue_target(resets, header, slack=1)}
    else:
        to_the_end = header.timestamp < 0
        targets = yield from time_targets(resets, header, topic.read_queue_nums, to_the_end=to_the_end)
    if not targets:
        raise no_queues()
    # Again: other requests may have run between two slices.
    known_topic(resets, header)
    _check_group(resets, header)
    _apply(resets, header, targets)
    return targets


def _check_group(resets: Resets, header: ResetOffsetRequestHeader) -> None:
    if resets.tables.groups.get(header.group) is None:
        raise unknown_group(header)
    refuse_fenced(resets, header)


def _apply(resets: Resets, header: ResetOffsetRequestHeader, targets: dict[int, int]) -> None:
    group, topic = header.group, header.topic
    try:
        resets.offsets.table.check_room(group, topic, targets)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    probe_targets(resets, header, targets)
    before = resets.offsets.table.offsets_of(group, topic)
    resets.offsets.table.replace(group, {topic: before | targets})
    resets.offsets.marks.put(group, topic, targets)
    resets.offsets.rewinds.on_reset(group, topic, targets, before)
    if resets.runtime.probe is not None:
        for queue_id, target in targets.items():
            stored = before.get(queue_id, NO_OFFSET)
            probe_reset(resets, header, ResetMode.SERVER, queue_id, target, stored, epoch=0)
    resets.announcer.announce(group, topic, targets)
