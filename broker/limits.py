"""How many entries the broker's tables may hold; RocketMQ has no bounds, and clients choose the names."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

# Loops over a topic's queues (202, 222) stay short.
MAX_QUEUE_NUMS: Final = 65_535
# Each new topic or group rewrites its table's file; each consumer group has a retry topic.
MAX_TOPICS: Final = 25_000
MAX_GROUPS: Final = 10_000
# What an administrator can still read of them; the total goes on counting.
MAX_FENCED_COMMITS: Final = 1_000
# Queues of one connection whose deliveries are remembered; a client with more is told its offset again.
MAX_DELIVERIES: Final = 65_536
# About 100 bytes each in the answer to 321.
MAX_CONSUME_QUEUE_ENTRIES: Final = 10_000
# Queues that orderly consumers hold; a lock is some 300 bytes.
MAX_QUEUE_LOCKS: Final = 100_000
# What is kept of a name a client gives itself.
MAX_CLIENT_ID_LENGTH: Final = 1_024


def check_room(what: str, count: int, limit: int) -> None:
    """Refuse to add to a full table.

    Args:
        what: the entries, for the remark.

    Raises:
        RequestError: code 1.
    """
    if count >= limit:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"there are {count} {what} already")
