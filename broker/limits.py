"""Limits of the broker's tables; RocketMQ has none, and clients choose the names."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

# Keeps loops over a topic's queues short (GET_TOPIC_STATS_INFO, INVOKE_BROKER_TO_RESET_OFFSET).
MAX_QUEUE_NUMS: Final = 65_535
# Each new topic or group rewrites its table's file. MAX_TOPICS is larger because each group has a retry
# topic.
MAX_TOPICS: Final = 25_000
MAX_GROUPS: Final = 10_000
# Refused commits that the broker lists, as many as an administrator can read; their total counts all.
MAX_FENCED_COMMITS: Final = 1_000
# Queues for which the broker remembers the deliveries to one connection. If it has to forget a queue, it
# redirects the client's next pull from that queue once more.
MAX_DELIVERIES: Final = 65_536
# About 100 bytes each in the response to QUERY_CONSUME_QUEUE (321).
MAX_CONSUME_QUEUE_ENTRIES: Final = 10_000
# About 150 bytes each in the responses to GET_CONSUME_STATS and GET_BROKER_CONSUME_STATS.
MAX_PROGRESS_QUEUES: Final = 70_000
# Queues of a response that are read at once: about 2 ms.
QUEUES_PER_SLICE: Final = 1_000
# Locks of orderly consumers; a lock takes some 300 bytes.
MAX_QUEUE_LOCKS: Final = 100_000
# Characters of a client id or broker name that the broker stores with a lock.
MAX_CLIENT_ID_LENGTH: Final = 1_024


def check_room(what: str, count: int, limit: int) -> None:
    """Refuse to add to a full table.

    Args:
        what: the entries, for the remark.

    Raises:
        RequestError: SYSTEM_ERROR (1), the table is full.
    """
    if count >= limit:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"there are {count} {what} already")
