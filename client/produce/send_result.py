"""What became of a send."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message_queue import MessageQueue


class SendStatus(StrEnum):
    """All four mean that the message is stored; the last three, that it is not as safe as asked for."""

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
    """Attributes:
    msg_id: the producer's unique id; of a batch, those of its messages joined by commas.
    offset_msg_id: the broker's id, which names its address and the position in its log.
    message_queue: where the message went.
    queue_offset: its index there; of a batch, that of the first message.
    region: ``MSG_REGION`` of the answer.
    """

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    message_queue: MessageQueue
    queue_offset: int
    region: str
