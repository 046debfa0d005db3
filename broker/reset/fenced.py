"""The fenced reset: raises epochs, so that the broker can refuse late commits (docs/spec/races.md E.18, F12).

Each queue's epoch goes up by one as its offset becomes the target. Both are on disk before they take effect.
Then the broker answers the suspended pulls of the queues, notifies the other clients that pull from them, and
responds to the administrator. Many clients learn of the reset a slice in each turn of the event loop, some of
them after the administrator. The broker refuses commits of older epochs as soon as the epochs are raised, so
there is no need to stop consumers or to wait for them. An offline group is reset in the same way.
"""

from __future__ import annotations

from collections.abc import Generator

from rewindmq.broker.offsets.flush import ResetPlan
from rewindmq.broker.reset.build import Resets
from rewindmq.broker.reset.targets import (
    in_slices,
    known_topic,
    names_offset,
    no_queues,
    probe_reset,
    probe_targets,
    queue_target,
    time_targets,
    unknown_group,
)
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables.consumer_offset import NO_OFFSET
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.reset_mode import ResetMode


async def reset(resets: Resets, request: RemotingCommand, header: ResetOffsetRequestHeader) -> dict[int, int]:
    """Raise the epochs and move the offsets, durably.

    Returns:
        The offset of each queue after the reset, by queue id. With force that is the target. Without force
        it is the smaller one of target and stored offset; a queue without a stored offset is left out. If the
        request names an ``offset`` for a single queue, the queue moves there with and without force.

    Raises:
        RequestError: TOPIC_NOT_EXIST (17); SUBSCRIPTION_GROUP_NOT_EXIST (26); SYSTEM_ERROR (1), the group is
            broadcasting, a queue or offset is out of range, there is no queue, there are too many offsets, or
            the disk fails. Then nothing is reset.
    """
    searched = in_slices(resets, header, _targets(resets, header))
    targets = searched if isinstance(searched, dict) else await searched
    table: dict[int, int] = {}

    def plan() -> ResetPlan:
        # Again: topic and group may have been deleted between two slices, or while another write ran.
        known_topic(resets, header)
        _check_group(resets, header)
        moving, standing = _split(resets, header, targets)
        table.update(sorted((standing | moving).items()))
        probe_targets(resets, header, table)
        return ResetPlan(header.group, header.topic, moving, lambda: _apply(resets, header, moving))

    try:
        await resets.offsets.flush.reset(plan)
    except StoreError as error:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"group {header.group} is not reset, nothing has changed: {error}"
        ) from None
    return table


def _targets(resets: Resets, header: ResetOffsetRequestHeader) -> Generator[None, None, dict[int, int]]:
    """Return the target of each queue in the request."""
    topic = known_topic(resets, header)
    _check_group(resets, header)
    # Queues beyond the read queues have no consumer now, but may still have offsets.
    queues = max(topic.read_queue_nums, topic.write_queue_nums)
    if header.queue_id < 0:
        if names_offset(header):
            raise RequestError(
                ResponseCode.SYSTEM_ERROR, f"offset {header.offset} is given without a queueId to apply it to"
            )
        to_the_end = header.timestamp < 0
        targets = yield from time_targets(resets, header, queues, to_the_end=to_the_end)
    elif header.queue_id < queues:
        targets = {header.queue_id: queue_target(resets, header, slack=0)}
    else:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"queueId {header.queue_id}: topic {header.topic} has {queues} queues here",
        )
    if not targets:
        raise no_queues()
    return targets


def _check_group(resets: Resets, header: ResetOffsetRequestHeader) -> None:
    name = header.group
    if resets.tables.groups.get(name) is None and not resets.offsets.table.topics_of(name):
        raise unknown_group(header)
    online = resets.clients.consumers.find(name)
    if online is not None and online.message_model is MessageModel.BROADCASTING:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"group {name} is broadcasting: each consumer stores its own offsets, which no broker can reset",
        )


def _split(
    resets: Resets, header: ResetOffsetRequestHeader, targets: dict[int, int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the queues to move to their targets, and the queues that keep their offsets."""
    # RocketMQ 5's tool commits the offset of a single queue first, and then sends it here without force.
    if header.is_force or names_offset(header):
        return targets, {}
    stored = resets.offsets.table.offsets_of(header.group, header.topic)
    moving = {queue_id: target for queue_id, target in targets.items() if target < stored.get(queue_id, -1)}
    standing = {
        queue_id: stored[queue_id] for queue_id in targets if queue_id in stored and queue_id not in moving
    }
    return moving, standing


def _apply(resets: Resets, header: ResetOffsetRequestHeader, moving: dict[int, int]) -> None:
    group, topic = header.group, header.topic
    try:
        # Again: they may have been deleted during the write, with the group's offsets.
        known_topic(resets, header)
        _check_group(resets, header)
    except RequestError:
        resets.offsets.table.drop_reset(group, topic)
        raise
    before = resets.offsets.table.offsets_of(group, topic)
    epochs = resets.offsets.table.reset(group, topic, moving)
    resets.offsets.marks.remove(group, topic, moving)
    if resets.pop is not None:
        for queue_id in moving:
            resets.pop.orders.clear_block(topic, group, queue_id)
    resets.offsets.rewinds.on_reset(group, topic, moving, before)
    if resets.runtime.probe is not None:
        for queue_id, offset in moving.items():
            stored = before.get(queue_id, NO_OFFSET)
            probe_reset(resets, header, ResetMode.FENCED, queue_id, offset, stored, epochs[queue_id])
    resets.announcer.announce(group, topic, moving, epochs)
