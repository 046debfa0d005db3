"""The message store: commit log, consume queues and offset tables in RocketMQ's on-disk format."""

from rewindmq.broker.store.config import FlushDiskType, StoreConfig
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.model import (
    BatchEntry,
    Boundary,
    GetMessageStatus,
    GetResult,
    PutResult,
    PutStatus,
    QueryResult,
    SearchMode,
    StoredMessage,
)
from rewindmq.broker.store.store import MessageStore

__all__ = [
    "BatchEntry",
    "Boundary",
    "FlushDiskType",
    "GetMessageStatus",
    "GetResult",
    "MessageStore",
    "PutResult",
    "PutStatus",
    "QueryResult",
    "SearchMode",
    "StoreConfig",
    "StoreError",
    "StoredMessage",
]
