"""PopResult: the outcome of one POP, and the handle of each message.

Source: RocketMQ 5.5.0 ``MQClientAPIImpl#processPopResponse``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.pop import PopMessageResponseHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import FIRST_POP_TIME, POP_CK
from rewindmq.protocol.message.record import decode_stream
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.pop.extra_info import ExtraInfo, ExtraInfoError, parse_extra_info
from rewindmq.protocol.pop.offset_info import QueueKey, parse_msg_offset_info, parse_start_offset_info
from rewindmq.protocol.pop.topics import NORMAL, RETRY_V1, RETRY_V2

_log = logging.getLogger(__name__)


class PopStatus(StrEnum):
    """The kind of outcome of a POP."""

    FOUND = "FOUND"
    POLLING_NOT_FOUND = "POLLING_NOT_FOUND"
    POLLING_FULL = "POLLING_FULL"


_STATUS_OF: Final = {
    int(ResponseCode.SUCCESS): PopStatus.FOUND,
    int(ResponseCode.POLLING_FULL): PopStatus.POLLING_FULL,
    int(ResponseCode.POLLING_TIMEOUT): PopStatus.POLLING_NOT_FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PopStatus.POLLING_NOT_FOUND,
}


class PoppedMessage(NamedTuple):
    """A message with the handle that acknowledges it."""

    message: MessageExt
    handle: ExtraInfo


class PopResult(NamedTuple):
    """The outcome of one POP; ``messages`` is empty unless the status is FOUND."""

    status: PopStatus
    messages: list[PoppedMessage]


def decode_pop_response(response: RemotingCommand, queue: MessageQueue) -> PopResult:
    """Decode the response to POP_MESSAGE (200050).

    A message without a readable handle is left out with a warning: it cannot be acknowledged, and the broker
    delivers it again.

    Raises:
        ResponseError: the code is not an outcome of a POP.
        HeaderError: a field is missing.
        OffsetInfoError: the response does not say from where the messages come.
    """
    status = _STATUS_OF.get(response.code)
    if status is None:
        raise ResponseError(response.code, response.remark)
    body = response.body
    if status is not PopStatus.FOUND or not isinstance(body, bytes):
        return PopResult(status, [])
    header = response.decode_header(PopMessageResponseHeader)
    messages, damage = decode_stream(body, queue.broker_name)
    if damage is not None:
        _log.warning("POP of %s: messages that cannot be read are left out: %s", queue, damage)
    return PopResult(status, list(_with_handles(messages, header, queue.broker_name)))


def _with_handles(
    messages: list[MessageExt], header: PopMessageResponseHeader, broker_name: str
) -> Iterator[PoppedMessage]:
    starts = parse_start_offset_info(header.start_offset_info)
    offsets = {key: set(found) for key, found in parse_msg_offset_info(header.msg_offset_info).items()}
    if not starts:
        # Of brokers that do not say it, all messages of a queue have the first one's offset as their start.
        for message in messages:
            starts.setdefault((NORMAL, message.queue_id), message.queue_offset)
            offsets.setdefault((NORMAL, message.queue_id), set()).add(message.queue_offset)
    for message in messages:
        handle = _handle(message, header, starts, offsets, broker_name)
        if handle is None:
            _log.warning(
                "message %s at offset %d of queue %d at broker %s has no readable handle: %r",
                *(message.msg_id, message.queue_offset, message.queue_id, broker_name),
                message.properties.get(POP_CK, "")[:200],
            )
            continue
        message.properties[POP_CK] = handle.text()
        message.properties.setdefault(FIRST_POP_TIME, str(header.pop_time))
        yield PoppedMessage(message, handle)


def _handle(
    message: MessageExt,
    header: PopMessageResponseHeader,
    starts: Mapping[QueueKey, int],
    offsets: Mapping[QueueKey, set[int]],
    broker_name: str,
) -> ExtraInfo | None:
    """Return the handle in a message of a retry topic, else that of a message of the topic itself.

    A producer may have set the property ``POP_CK``. Such a text names no POP of this response.
    """
    text = message.properties.get(POP_CK)
    if text is not None:
        handle = _of_retry_topic(text, starts)
        if handle is not None:
            return handle
    key = (NORMAL, message.queue_id)
    if key not in starts or message.queue_offset not in offsets.get(key, ()):
        return None
    return ExtraInfo(
        starts[key],
        header.pop_time,
        header.invisible_time,
        header.revive_qid,
        NORMAL,
        broker_name,
        message.queue_id,
        message.queue_offset,
    )


def _of_retry_topic(text: str, starts: Mapping[QueueKey, int]) -> ExtraInfo | None:
    try:
        handle = parse_extra_info(text)
    except ExtraInfoError:
        return None
    if handle.topic_type not in (RETRY_V1, RETRY_V2) or handle.queue_id is None or handle.offset is None:
        return None
    return handle if (handle.topic_type, handle.queue_id) in starts else None
