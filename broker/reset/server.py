"""The server-side reset of RocketMQ 5, with its known flaws S1 to S7.

Specification: docs/spec/reset.md D.9; docs/spec/races.md E.16.

5.3.3 ``AdminBrokerProcessor#resetOffsetInner``: each target is stored at once, in memory, and leaves a mark.
Until a pull consumes the mark, QUERY_CONSUMER_OFFSET (14) returns it and UPDATE_CONSUMER_OFFSET (15) is
ignored. The broker notifies no consumer. It ignores force and language, and does not check a queue id. A
slave refuses the reset.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.reset.targets import (
    known_topic,
    no_queues,
    probe_reset,
    probe_targets,
    queue_target,
    refuse_fenced,
    time_target,
    unknown_group,
)
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode


def reset(
    context: BrokerContext, request: RemotingCommand, header: ResetOffsetRequestHeader
) -> dict[MessageQueue, int]:
    """Store the targets and mark their queues.

    Returns:
        The targets.

    Raises:
        RequestError: TOPIC_NOT_EXIST (17); SUBSCRIPTION_GROUP_NOT_EXIST (26); SYSTEM_ERROR (1), an offset is
            out of range, there is no queue, there are too many offsets, or the group was reset in fenced
            mode.
    """
    topic = known_topic(context, header)
    if context.groups.get(header.group) is None:
        raise unknown_group(header)
    refuse_fenced(context, header)
    # 5.3.3 accepts an offset one past the end.
    if header.queue_id >= 0:
        targets = {header.queue_id: queue_target(context, header, slack=1)}
    else:
        to_the_end = header.timestamp < 0
        targets = {
            queue_id: time_target(context, header, queue_id, to_the_end=to_the_end)
            for queue_id in range(topic.read_queue_nums)
        }
    if not targets:
        raise no_queues()
    table = {
        MessageQueue(header.topic, context.config.broker_name, queue_id): target
        for queue_id, target in targets.items()
    }
    try:
        context.offsets.check_room(header.group, header.topic, targets)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    probe_targets(context, header, table)
    for queue_id, target in targets.items():
        stored = context.offsets.commit(header.group, header.topic, queue_id, target)
        context.reset_offsets.put(header.group, header.topic, queue_id, target)
        probe_reset(context, header, ResetMode.SERVER, queue_id, target, stored, epoch=0)
    return table
