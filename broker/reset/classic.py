"""The classic reset: the broker computes the offsets, and the consumers apply them.

RocketMQ 4.9.4 ``Broker2Client#resetOffset`` (docs/spec/reset.md D.2, D.3).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Generator
from typing import Final

import msgspec

from rewindmq.broker.clients.consumer_manager import ConsumerGroup
from rewindmq.broker.limits import (
    CONSUMERS_PER_SLICE,
    NOTIFIED_BYTES_PER_SLICE,
    QUEUES_PER_SLICE,
    SEARCHES_PER_SLICE,
)
from rewindmq.broker.reset.build import Resets
from rewindmq.broker.reset.targets import in_slices, probe_targets, refuse_fenced, reset_body, time_target
from rewindmq.protocol.body.offset_table import MessageQueueForC, ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import PreparedBody
from rewindmq.protocol.codec.body_slices import encode_in_slices
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError, RequestError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.points import Point
from rewindmq.protocol.version import LanguageCode, MQVersion, version_name

_log = logging.getLogger(__name__)

_TO_THE_END: Final = -1


def reset(
    resets: Resets, request: RemotingCommand, header: ResetOffsetRequestHeader
) -> dict[int, int] | Awaitable[dict[int, int]]:
    """Send RESET_CONSUMER_CLIENT_OFFSET (220) to every consumer of the group.

    Returns:
        The offsets sent, by queue id; the broker's stored offsets stay as they are.

    Raises:
        RequestError: ``BrokerProfile.reset_unknown_topic_code``, the topic is unknown; SYSTEM_ERROR (1), a
            queue has no stored offset, the request names a single queue, the group was reset in fenced mode,
            or a consumer is older than 3.0.7; CONSUMER_NOT_ONLINE (206), no consumer is online.
    """
    return in_slices(resets, header, _reset(resets, header, for_c=request.language == LanguageCode.CPP))


def _reset(
    resets: Resets, header: ResetOffsetRequestHeader, *, for_c: bool
) -> Generator[None, None, dict[int, int]]:
    if header.queue_id >= 0:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            "[reset-offset] in classic mode this broker resets whole topics: for queue"
            f" {header.queue_id} alone use --mode server or fenced",
        )
    refuse_fenced(resets, header)
    targets = yield from _targets(resets, header)
    probe_targets(resets, header, targets)
    offsets = yield from reset_body(resets, header.topic, targets)
    body: msgspec.Struct = offsets
    if for_c:
        body = yield from _body_for_c(offsets)
    told = PreparedBody(body)
    # Consumers may come and go between two slices, so ask for them again.
    while missing := _serialize_types(_online(resets, header)) - told.encoded.keys():
        serialize_type = min(missing)
        told.encoded[serialize_type] = yield from encode_in_slices(body, serialize_type)
    # Again: other requests may have run between two slices.
    _known_topic(resets, header)
    refuse_fenced(resets, header)
    # Remove the marks of earlier resets: they would redirect the consumers away from the new offsets.
    resets.offsets.marks.remove(header.group, header.topic, targets)
    resets.offsets.rewinds.expect(header.group, header.topic, targets)
    yield from _notify(resets, header, _online(resets, header), told)
    return targets


def _targets(resets: Resets, header: ResetOffsetRequestHeader) -> Generator[None, None, dict[int, int]]:
    """Return the target of each write queue."""
    topic = _known_topic(resets, header)
    targets = {}
    for queue_id in range(topic.write_queue_nums):
        if queue_id % SEARCHES_PER_SLICE == 0 < queue_id:
            yield
        stored = resets.offsets.table.query(header.group, header.topic, queue_id)
        if stored < 0:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist")
        target = time_target(resets, header, queue_id, to_the_end=header.timestamp == _TO_THE_END)
        moves = header.is_force or target < stored
        targets[queue_id] = target if moves else stored
    return targets


def _known_topic(resets: Resets, header: ResetOffsetRequestHeader) -> TopicConfig:
    topic = resets.tables.topics.find(header.topic)
    if topic is None:
        raise RequestError(
            resets.profile.reset_unknown_topic_code,
            f"[reset-offset] reset offset failed, no topic in this broker. topic={header.topic}",
        )
    return topic


def _body_for_c(body: ResetOffsetBody) -> Generator[None, None, ResetOffsetBodyForC]:
    told = ResetOffsetBodyForC()
    for number, (queue, offset) in enumerate(body.offset_table.items(), 1):
        told.offset_table.append(MessageQueueForC(*queue, offset))
        if number % QUEUES_PER_SLICE == 0:
            yield
    return told


def _online(resets: Resets, header: ResetOffsetRequestHeader) -> ConsumerGroup:
    group = resets.clients.consumers.find(header.group)
    if group is None:
        raise RequestError(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {header.group} Topic: {header.topic}"
            f" Timestamp: {header.timestamp}",
        )
    return group


def _serialize_types(group: ConsumerGroup) -> set[SerializeType]:
    return {connection.peer_serialize_type for connection in group.channels}


def _notify(
    resets: Resets, header: ResetOffsetRequestHeader, group: ConsumerGroup, told: PreparedBody
) -> Generator[None, None, None]:
    """Send the reset notification to each consumer.

    Yields after ``CONSUMERS_PER_SLICE`` consumers, or ``NOTIFIED_BYTES_PER_SLICE``.

    Raises:
        RequestError: SYSTEM_ERROR (1), a consumer is older than 3.0.7; the consumers before it have been
            notified.
    """
    notice = ResetOffsetRequestHeader(header.topic, header.group, header.timestamp, False)
    count = size = 0
    for channel in list(group.channels.values()):
        if count >= CONSUMERS_PER_SLICE or size >= NOTIFIED_BYTES_PER_SLICE:
            yield
            count = size = 0
        count += 1
        size += len(told.encoded.get(channel.connection.peer_serialize_type, b""))
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
        if resets.runtime.probe is not None:
            details = {"group": header.group, "topic": header.topic, "client": channel.client_id}
            resets.runtime.probe(Point.CLIENT_NOTIFIED, details)
