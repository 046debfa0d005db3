"""The result of a send."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import HeaderError, ResponseError, UnreadableResponseError
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message_queue import MessageQueue


class SendStatus(StrEnum):
    """How safely a message is stored; it is stored with each of the four statuses.

    ``FLUSH_DISK_TIMEOUT``: not flushed to disk in time. ``FLUSH_SLAVE_TIMEOUT``: not copied by a slave in
    time. ``SLAVE_NOT_AVAILABLE``: no slave could copy it.
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


STATUS_OF_CODE: Final = {
    int(ResponseCode.SUCCESS): SendStatus.SEND_OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): SendStatus.FLUSH_DISK_TIMEOUT,
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): SendStatus.FLUSH_SLAVE_TIMEOUT,
    int(ResponseCode.SLAVE_NOT_AVAILABLE): SendStatus.SLAVE_NOT_AVAILABLE,
}


class SendResult(NamedTuple):
    """Where and how safely a message was stored.

    Attributes:
        status: how safely.
        msg_id: the unique id that the producer gave; for a batch, those of all messages, joined by commas.
        offset_msg_id: the id that the broker gave: its address, and the position in its commit log.
        message_queue: the queue in which the message is stored.
        queue_offset: the offset in that queue; for a batch, that of the first message.
        region: the broker's region (``MSG_REGION``).
        recall_handle: for ``Producer.recall``; None unless the message waits for its time at a 5.x broker.
    """

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    message_queue: MessageQueue
    queue_offset: int
    region: str
    recall_handle: str | None = None


_SEND_OK: Final = SendStatus.SEND_OK
_new: Final = tuple.__new__


def result_of(response: RemotingCommand, msg_id: str, queue: MessageQueue) -> SendResult:
    """Return the result that a response gives; ``queue`` is the queue to which the message was sent.

    Raises:
        ResponseError: the message was not stored.
        UnreadableResponseError: the message is stored, but the response's header is invalid.
    """
    status = STATUS_OF_CODE.get(response.code)
    if status is None:
        raise ResponseError(response.code, response.remark)
    try:
        header = response.decode_header(SendMessageResponseHeader)
    except HeaderError as error:
        raise UnreadableResponseError(
            f"{queue.broker_name} has stored the message, but its response cannot be read: {error.remark}"
        ) from None
    return stored_result(header, msg_id, queue, status)


def stored_result(
    header: SendMessageResponseHeader, msg_id: str, queue: MessageQueue, status: SendStatus = _SEND_OK
) -> SendResult:
    """Return the result of a stored message."""
    if header.queue_id != queue.queue_id:
        queue = queue._replace(queue_id=header.queue_id)
    region = header.msg_region or "DefaultRegion"
    # Without the call of the named tuple's own function.
    return _new(
        SendResult, (status, msg_id, header.msg_id, queue, header.queue_offset, region, header.recall_handle)
    )
