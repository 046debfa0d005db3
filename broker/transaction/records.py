"""Builds the messages that the broker stores for a transaction, from its half message."""

from __future__ import annotations

from typing import Final

from rewindmq.broker.store.model import StoredMessage
from rewindmq.broker.transaction.half import HALF_QUEUE
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import REAL_QID, REAL_TOPIC, TAGS, WAIT, format_properties
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK
from rewindmq.protocol.names import TRANS_OP_HALF_TOPIC
from rewindmq.protocol.text import java_hash

# RocketMQ's tag for "this half message is done".
REMOVE_TAG: Final = "d"
# The constructor of RocketMQ's Message adds WAIT.
_OP_PROPERTIES: Final = format_properties({TAGS: REMOVE_TAG, WAIT: "true"}).encode()
_OP_TAGS_CODE: Final = java_hash(REMOVE_TAG)
_MAX_QUEUE_ID: Final = 0x7FFF_FFFF


def real_queue(half: MessageExt) -> tuple[str, int]:
    """Return the topic and queue to which a half message was sent.

    Raises:
        RequestError: SYSTEM_ERROR (1), the message's properties do not have them.
    """
    topic, text = half.properties.get(REAL_TOPIC), half.properties.get(REAL_QID, "")
    queue_id = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else -1
    if topic is None or not 0 <= queue_id <= _MAX_QUEUE_ID:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"the half message at {half.commit_log_offset} has no real topic and queue",
        )
    return topic, queue_id


def copied(
    half: MessageExt,
    topic: str,
    queue_id: int,
    *,
    transaction_flag: int = 0,
    prepared_offset: int = 0,
    body: bytes | None = None,
    properties: bytes | None = None,
) -> StoredMessage:
    """Return a copy of a half message, to store again or in another topic.

    Args:
        transaction_flag: the transaction bits of the new record.
        prepared_offset: log position of the half message, for a record that ends it.
        body: None keeps the body.
        properties: their text; None keeps them.
    """
    tags = half.tags
    return StoredMessage(
        topic,
        queue_id,
        half.stored_body if body is None else body,
        half.packed_properties if properties is None else properties,
        java_hash(tags) if tags else 0,
        half.flag,
        half.sys_flag & ~int(TRANSACTION_MASK) | transaction_flag,
        half.born_timestamp,
        half.packed_born_host,
        half.reconsume_times,
        prepared_offset,
    )


def op_record(offset: int, separator: str, now_ms: int, host: bytes) -> StoredMessage:
    """Return the op record that marks the half message at ``offset`` as done.

    Args:
        separator: text after each offset, see ``BrokerProfile``.
        host: the broker's own address, packed as in records.
    """
    return StoredMessage(
        TRANS_OP_HALF_TOPIC,
        HALF_QUEUE,
        f"{offset}{separator}".encode(),
        _OP_PROPERTIES,
        _OP_TAGS_CODE,
        born_timestamp=now_ms,
        born_host=host,
    )
