"""Arguments and results of the message store."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

import msgspec


class StoredMessage(msgspec.Struct, gc=False):
    """One message to store; for a batch, the fields its inner messages share.

    Attributes:
        topic: name as stored, at most 127 bytes in UTF-8; 255 in a store that writes V2 records.
        queue_id: 0 or above.
        body: as stored (still compressed).
        properties: the properties text in UTF-8, at most 32 767 bytes; for a batch, they are appended to
            each inner message's.
        tags_code: tagsCode of the consume-queue entry: ``java_hash`` of TAGS, or 0. Ignored for the schedule
            topic.
        flag: the application's flag.
        sys_flag: int32; the two IPv6 bits are set by the store.
        born_timestamp: the producer's clock, ms.
        born_host: 4-byte address and 4-byte port, or 16 and 4.
        reconsume_times: number of earlier failed deliveries.
        prepared_transaction_offset: log position of the half message of a commit record, else 0.
    """

    topic: str
    queue_id: int
    body: bytes | memoryview
    properties: bytes = b""
    tags_code: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = b"\x7f\x00\x00\x01\x00\x00\x00\x00"
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0


class BatchEntry(NamedTuple):
    """One inner message of a batch. A plain tuple also works: brokers create one per message."""

    body: bytes | memoryview
    properties: bytes
    tags_code: int = 0
    flag: int = 0


BatchEntries = Sequence[tuple[bytes | memoryview, bytes, int, int]]


class PutStatus(Enum):
    """Outcome of a put (RocketMQ ``PutMessageStatus``); only PUT_OK has stored the message."""

    PUT_OK = "PUT_OK"
    # Topic, properties or body over their limits.
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    # The store is closed, or an earlier write failed.
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    # The disk has no room for the message or its consume-queue entry; reads continue.
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"


class PutResult(msgspec.Struct, frozen=True, gc=False):
    """Outcome of a put, and the positions of the stored message.

    Attributes:
        physical_offset: log position of the (first) record.
        queue_offset: index of the (first) message in its queue.
        size: bytes of the record, of all records for a batch; the last byte is at physical_offset + size - 1.
        store_timestamp: ms, never less than that of an earlier put.
        message_count: 1, or the number of inner messages.
    """

    status: PutStatus
    physical_offset: int = -1
    queue_offset: int = -1
    size: int = 0
    store_timestamp: int = -1
    message_count: int = 0


class GetMessageStatus(IntEnum):
    """Outcome of a read (RocketMQ ``GetMessageStatus``)."""

    FOUND = 0
    NO_MATCHED_MESSAGE = 1
    MESSAGE_WAS_REMOVING = 2
    OFFSET_FOUND_NULL = 3
    OFFSET_OVERFLOW_BADLY = 4
    OFFSET_OVERFLOW_ONE = 5
    OFFSET_TOO_SMALL = 6
    NO_MATCHED_LOGIC_QUEUE = 7
    NO_MESSAGE_IN_QUEUE = 8
    OFFSET_RESET = 9


class GetResult(msgspec.Struct, frozen=True, gc=False):
    """Outcome of a read: the records and the offset to continue from (docs/spec/broker.md B.5).

    Attributes:
        body: the records in sequence, as in the log.
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    body: bytes = b""
    message_count: int = 0


class QueryResult(msgspec.Struct, frozen=True, gc=False):
    """Records under a key, and the newest message in the index.

    Attributes:
        body: the records in sequence, as in the log, oldest first.
        index_last_update_timestamp: store time of the newest message in the index, ms; 0 without an index.
        index_last_update_phyoffset: its log position; 0 without an index.
    """

    body: bytes
    message_count: int
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class Boundary(Enum):
    """The first or the last of several messages with one store time (RocketMQ 5 ``BoundaryType``)."""

    LOWER = "lower"
    UPPER = "upper"


class SearchMode(Enum):
    """The release whose search by time is used (docs/spec/broker.md B.10)."""

    # 4.2.0 to 5.1.0: chooses the file by modification time, and in a gap the nearest neighbour; ignores the
    # boundary.
    NEAREST = "nearest"
    # 5.1.1 and later.
    BOUNDARY = "boundary"
