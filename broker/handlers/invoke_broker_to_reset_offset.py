"""222 INVOKE_BROKER_TO_RESET_OFFSET: rewind (or move on) a group in a topic, the classic way.

Kept from 4.9.4 ``Broker2Client#resetOffset`` (``behaviour.md`` D.2, D.3): the order topic, offsets, online
members; one queue without a stored offset fails all; 220 goes oneway to each member in order of
registration, and those before a member that is too old have it when the request fails; the offsets stored
here stay as they are. Changed: under v53 an unknown topic is 17. Refused with 1: ``queueId`` >= 0 of the 5.x
tools, which a classic broker would take for a reset of the whole topic.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.client_channel import ClientChannel
from rewindmq.broker.consumer_manager import ConsumerGroup
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.model import Boundary
from rewindmq.protocol.body.offset_table import ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError, RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import LanguageCode, MQVersion, version_name

_log = logging.getLogger(__name__)

_TO_THE_END: Final = -1
# pyrocketmq always says so; it is not as old as that (wire.md 9, 23).
_PYROCKETMQ_VERSION: Final = 1


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(ResetOffsetRequestHeader)
    probe = context.runtime.probe
    if probe is not None:
        probe(
            Point.RESET_RECEIVED,
            {"group": header.group, "topic": header.topic, "timestamp": header.timestamp},
        )
    if header.queue_id >= 0:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"[reset-offset] this broker resets whole topics, not only queue {header.queue_id}",
        )
    table = _targets(context, header)
    if probe is not None:
        targets = [[queue.broker_name, queue.queue_id, offset] for queue, offset in table.items()]
        probe(
            Point.RESET_TARGETS_COMPUTED,
            {"group": header.group, "topic": header.topic, "targets": targets},
        )
    group = context.consumers.find(header.group)
    if group is None:
        raise RequestError(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {header.group} Topic: {header.topic}"
            f" Timestamp: {header.timestamp}",
        )
    body = ResetOffsetBody(table)
    _notify(context, header, group, body, for_c=request.language == LanguageCode.CPP)
    return RemotingCommand(ResponseCode.SUCCESS, body=body)


def _targets(context: BrokerContext, header: ResetOffsetRequestHeader) -> dict[MessageQueue, int]:
    """The offset of each write queue to go to.

    Raises:
        RequestError: 1 (v53: 17) for an unknown topic, 1 for a queue without a stored offset.
    """
    topic = context.topics.find(header.topic)
    if topic is None:
        raise RequestError(
            context.rules.reset_unknown_topic_code,
            f"[reset-offset] reset offset failed, no topic in this broker. topic={header.topic}",
        )
    table = {}
    for queue_id in range(topic.write_queue_nums):
        stored = context.offsets.query(header.group, header.topic, queue_id)
        if stored < 0:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist")
        target = _target(context, header, queue_id)
        moves = header.is_force or target < stored
        table[MessageQueue(header.topic, context.config.broker_name, queue_id)] = target if moves else stored
    return table


def _target(context: BrokerContext, header: ResetOffsetRequestHeader, queue_id: int) -> int:
    if header.timestamp == _TO_THE_END:
        return context.store.max_offset(header.topic, queue_id)
    return context.store.search_offset(
        header.topic, queue_id, header.timestamp, Boundary.LOWER, context.rules.search_mode
    )


def _notify(
    context: BrokerContext,
    header: ResetOffsetRequestHeader,
    group: ConsumerGroup,
    body: ResetOffsetBody,
    *,
    for_c: bool,
) -> None:
    """Send 220 to each member.

    Raises:
        RequestError: 1, a member is older than 3.0.7; those before it have been told.
    """
    notice = ResetOffsetRequestHeader(header.topic, header.group, header.timestamp, False)
    told = ResetOffsetBodyForC.of(body) if for_c else body
    for channel in list(group.channels.values()):
        if _is_too_old(channel):
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"the client does not support this feature. version={version_name(channel.version)}",
            )
        command = RemotingCommand(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, notice, told)
        try:
            channel.connection.send_oneway(command)
        except ConnectionLostError as error:
            _log.warning("[reset-offset] 220 for group %s not sent: %s", header.group, error)
            continue
        if context.runtime.probe is not None:
            details = {"group": header.group, "topic": header.topic, "client": channel.client_id}
            context.runtime.probe(Point.CLIENT_NOTIFIED, details)


def _is_too_old(channel: ClientChannel) -> bool:
    if channel.language == LanguageCode.PYTHON and channel.version == _PYROCKETMQ_VERSION:
        return False
    return channel.version < MQVersion.V3_0_7_SNAPSHOT
