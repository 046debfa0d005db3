"""Bits of the flags in records and requests (docs/spec/protocol.md 6.4, 7.1, 7.4)."""

from __future__ import annotations

from enum import IntFlag
from typing import Final


class MessageSysFlag(IntFlag):
    """sysFlag of a message (RocketMQ ``MessageSysFlag``)."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    TRANSACTION_PREPARED = 0x4
    TRANSACTION_COMMIT = 0x8
    TRANSACTION_ROLLBACK = 0xC
    BORNHOST_V6 = 0x10
    STOREHOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80


TRANSACTION_MASK: Final = 0xC
COMPRESSION_TYPE_MASK: Final = 0x700
COMPRESSION_LZ4: Final = 0x100
COMPRESSION_ZSTD: Final = 0x200
COMPRESSION_ZLIB: Final = 0x300


class PullSysFlag(IntFlag):
    """sysFlag of a pull request (RocketMQ ``PullSysFlag``)."""

    COMMIT_OFFSET = 0x1
    SUSPEND = 0x2
    SUBSCRIPTION = 0x4
    CLASS_FILTER = 0x8
    LITE_PULL_MESSAGE = 0x10


class Perm(IntFlag):
    """Permission of a topic or broker (RocketMQ ``PermName``)."""

    INHERIT = 0x1
    WRITE = 0x2
    READ = 0x4
    PRIORITY = 0x8


PERM_READ_WRITE: Final = int(Perm.READ | Perm.WRITE)


class TopicSysFlag(IntFlag):
    """sysFlag of a topic (RocketMQ ``TopicSysFlag``)."""

    UNIT = 0x1
    UNIT_SUB = 0x2
