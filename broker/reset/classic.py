"""The classic reset: the broker computes the offsets, and the consumers apply them.

RocketMQ 4.9.4 ``Broker2Client#resetOffset`` (docs/spec/reset.md D.2, D.3).
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.clients.consumer_manager import ConsumerGroup
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.reset.targets import probe_targets, refuse_fenced, time_target
from rewindmq.protocol.body.offset_table import ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError, RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.version import LanguageCode, MQVersion, version_name

_log = logging.getLogger(__name__)

_TO_THE_END: Final = -1


def reset(
    context: BrokerContext, request: RemotingCommand, header: ResetOffsetRequestHeader
) -> dict[MessageQueue, int]:
    """Send RESET_CONSUMER_CLIENT_OFFSET (220) to every consumer of the group.

    Returns:
        The offsets sent; the broker's stored offsets stay as they are.

    Raises:
        RequestError: ``BrokerProfile.reset_unknown_topic_code``, the topic is unknown; SYSTEM_ERROR (1), a
            queue has no stored offset, the request names a single queue, the group was reset in fenced mode,
            or a consumer is older than 3.0.7; CONSUMER_NOT_ONLINE (206), no consumer is online.
    """
    if header.queue_id >= 0:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            "[reset-offset] in classic mode this broker resets whole topics: for queue"
            f" {header.queue_id} alone use --mode server or fenced",
        )
    refuse_fenced(context, header)
    table = _targets(context, header)
    probe_targets(context, header, table)
    group = context.consumers.find(header.group)
    if group is None:
        raise RequestError(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {header.group} Topic: {header.topic}"
            f" Timestamp: {header.timestamp}",
        )
    # Remove the marks of earlier resets: they would redirect the consumers away from the new offsets.
    context.reset_offsets.remove(header.group, header.topic, [queue.queue_id for queue in table])
    _notify(context, header, group, ResetOffsetBody(table), for_c=request.language == LanguageCode.CPP)
    return table


def _targets(context: BrokerContext, header: ResetOffsetRequestHeader) -> dict[MessageQueue, int]:
    """Return the target of each write queue."""
    topic = context.topics.find(header.topic)
    if topic is None:
        raise RequestError(
            context.profile.reset_unknown_topic_code,
            f"[reset-offset] reset offset failed, no topic in this broker. topic={header.topic}",
        )
    table = {}
    for queue_id in range(topic.write_queue_nums):
        stored = context.offsets.query(header.group, header.topic, queue_id)
        if stored < 0:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist")
        target = time_target(context, header, queue_id, to_the_end=header.timestamp == _TO_THE_END)
        moves = header.is_force or target < stored
        table[MessageQueue(header.topic, context.config.broker_name, queue_id)] = target if moves else stored
    return table


def _notify(
    context: BrokerContext,
    header: ResetOffsetRequestHeader,
    group: ConsumerGroup,
    body: ResetOffsetBody,
    *,
    for_c: bool,
) -> None:
    """Send the reset notification to each consumer.

    Raises:
        RequestError: SYSTEM_ERROR (1), a consumer is older than 3.0.7; the consumers before it have been
            notified.
    """
    notice = ResetOffsetRequestHeader(header.topic, header.group, header.timestamp, False)
    told = ResetOffsetBodyForC.of(body) if for_c else body
    for channel in list(group.channels.values()):
        if channel.is_older_than(MQVersion.V3_0_7_SNAPSHOT):
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"the client does not support this feature. version={version_name(channel.version)}",
            )
        command = RemotingCommand(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, notice, told)
        try:
            channel.connection.send_oneway(command)
        except ConnectionLostError as error:
            _log.warning(
                "[reset-offset] can not send RESET_CONSUMER_CLIENT_OFFSET (220) for group %s: %s",
                header.group,
                error,
            )
            continue
        if context.runtime.probe is not None:
            details = {"group": header.group, "topic": header.topic, "client": channel.client_id}
            context.runtime.probe(Point.CLIENT_NOTIFIED, details)
