"""PullResult: the outcome of one pull (docs/spec/client.md C.7, C.13; docs/spec/protocol.md 3.4, 6.2)."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Final, NamedTuple

from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.pull import PullMessageResponseHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import RecordError, decode_stream
from rewindmq.protocol.message_queue import MessageQueue

_log = logging.getLogger(__name__)


class PullStatus(StrEnum):
    """The kind of outcome of a pull."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


_STATUS_OF: Final = {
    int(ResponseCode.SUCCESS): PullStatus.FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PullStatus.NO_NEW_MSG,
    int(ResponseCode.PULL_RETRY_IMMEDIATELY): PullStatus.NO_MATCHED_MSG,
    int(ResponseCode.PULL_OFFSET_MOVED): PullStatus.OFFSET_ILLEGAL,
}


class PullResult(NamedTuple):
    """The outcome of one pull.

    Attributes:
        next_begin_offset: offset of the next pull.
        min_offset, max_offset: bounds of the queue at the time of the response.
        messages: messages whose tags match the subscription; FOUND may have none.
        suggested_broker_id: the broker for the next pull, 0 for the master.
        epoch: number of fenced resets of the queue.
    """

    status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: list[MessageExt]
    suggested_broker_id: int = 0
    epoch: int = 0


def decode_pull_response(
    response: RemotingCommand, queue: MessageQueue, offset: int, subscription: SubscriptionData
) -> PullResult:
    """Decode a pull response, and filter its messages by tag text: the broker compares only hashes.

    A damaged record and all records after it are dropped, as in Java's client, with a warning.

    Args:
        offset: the offset of the pull.

    Raises:
        ResponseError: the code is not an outcome of a pull.
        HeaderError: a field is missing.
    """
    status = _STATUS_OF.get(response.code)
    if status is None:
        raise ResponseError(response.code, response.remark)
    header = response.decode_header(PullMessageResponseHeader)
    messages: list[MessageExt] = []
    body = response.body
    if status is PullStatus.FOUND and isinstance(body, bytes):
        messages, damage = decode_stream(body, queue.broker_name)
        if damage is not None:
            seen_to = messages[-1].queue_offset + 1 if messages else offset
            _warn(queue, seen_to, header.next_begin_offset, damage, len(body))
        tags = subscription.tags_set
        if tags and not subscription.class_filter_mode:
            messages = [message for message in messages if message.tags in tags]
    return PullResult(
        status,
        header.next_begin_offset,
        header.min_offset,
        header.max_offset,
        messages,
        header.suggest_which_broker_id,
        header.epoch or 0,
    )


def _warn(queue: MessageQueue, begin: int, end: int, damage: RecordError, size: int) -> None:
    _log.warning(
        "pull of %s: messages from offset %d up to %d dropped, the rest of the %d bytes cannot be read: %s",
        *(queue, begin, end, size, damage),
    )
