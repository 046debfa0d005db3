"""The file ``knownEnd.json`` of a store that a snapshot restored: where its log and its queues end.

RewindMQ's own file; RocketMQ ignores it. A broker that opens the store uses it instead of reading records,
and removes it. Without it, recovery finds the same ends.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rewindmq.protocol.command import DECODE_FAILURES

KNOWN_END_FILE: Final = "knownEnd.json"


class KnownEnd(msgspec.Struct, frozen=True, rename="camel"):
    """The ends of a whole and consistent store.

    Attributes:
        log_end: log position behind the last record.
        last_store_timestamp: its store timestamp, ms.
        queue_ends: topic to queue id to the queue offset of the next message.
    """

    log_end: int
    last_store_timestamp: int
    queue_ends: dict[str, dict[int, int]]


def decode_known_end(data: bytes | None) -> KnownEnd | None:
    """Return the content of the file; None if it is missing or unreadable."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=KnownEnd)
    except DECODE_FAILURES:
        return None
