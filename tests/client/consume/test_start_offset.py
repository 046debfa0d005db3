"""Where the consumption of a new queue starts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rewindmq import ConsumeFromWhere, MessageQueue
from rewindmq.client.consume.start_offset import start_offset


@dataclass
class _Known:
    """What a broker knows about a queue of any topic."""

    stored: int

    async def stored_offset(self, queue: MessageQueue) -> int:
        return self.stored

    async def max_offset(self, queue: MessageQueue) -> int:
        return 50

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        return timestamp


@pytest.mark.parametrize(
    ("where", "topic", "stored", "expected"),
    [
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, "T", -1, 50),
        (ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, "%RETRY%G", -1, 0),
        *(
            (retired, topic, -1, expected)
            for retired in (
                ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
                ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
                ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
            )
            for topic, expected in (("T", 50), ("%RETRY%G", 0))
        ),
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, "T", -1, 0),
        (ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, "%RETRY%G", -1, 0),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, "T", -1, 17),
        (ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, "%RETRY%G", -1, 50),
        *((where, topic, 0, 0) for where in ConsumeFromWhere for topic in ("T", "%RETRY%G")),
        *((where, topic, 9, 9) for where in ConsumeFromWhere for topic in ("T", "%RETRY%G")),
    ],
)
async def test_where_a_queue_begins(where: ConsumeFromWhere, topic: str, stored: int, expected: int) -> None:
    """The table of docs/spec/client.md C.9."""
    assert await start_offset(MessageQueue(topic, "broker-a", 0), where, 17, _Known(stored)) == expected
