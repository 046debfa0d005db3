"""Limits of the broker's tables; RocketMQ has none, and clients choose the names."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

# Each new topic or group rewrites its table's file. MAX_TOPICS is larger because each group has a retry
# topic.
MAX_TOPICS: Final = 25_000
MAX_GROUPS: Final = 10_000
# Pairs of topic and group with a mode of SET_MESSAGE_REQUEST_MODE (401).
MAX_REQUEST_MODES: Final = 10_000
# Queues of topics that the broker remembers for QUERY_ASSIGNMENT (400), some 120 bytes each; it asks a name
# server again for the topics that it has forgotten.
MAX_ROUTED_QUEUES: Final = 200_000
# Queues that groups pop in order (POP_MESSAGE with ``order``); some 600 bytes each.
MAX_ORDER_INFOS: Final = 100_000
# Characters of the name that such a POP may give itself; official clients send a UUID.
MAX_ATTEMPT_ID_LENGTH: Final = 1_024
# Topics of UPDATE_AND_CREATE_TOPIC_LIST (18), groups of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): some
# microseconds each.
MAX_LISTED_CONFIGS: Final = 2_000
# Messages of SEND_BATCH_MESSAGE (320) whose ids, of 57 bytes at most, fit into the header of a response.
# RocketMQ's limit of 4 MiB holds 182,361 at most.
MAX_BATCH_MESSAGES: Final = 262_144
# Messages of a batch that one step of the event loop stores, in some 7 ms.
MAX_BATCH_PART_MESSAGES: Final = 32_768
# A connection's part of the groups online, of producers and of consumers: one client has far fewer.
MAX_GROUPS_PER_CONNECTION: Final = 500
# Pairs of a group online and a connection, of producers and of consumers; some 300 bytes each.
MAX_GROUP_CHANNELS: Final = 200_000
# About the memory of the subscriptions in heartbeats, see ``subscription_bytes``: of the groups whose
# subscriptions one connection has set, and of all.
MAX_SUBSCRIPTION_BYTES_PER_CONNECTION: Final = 4 << 20
MAX_SUBSCRIPTION_BYTES: Final = 64 << 20
# About the memory of suspended pulls, 1 KiB each and ``SUSPENDED_BYTES_PER_CHARACTER`` for the filter in a
# pull: of one connection, and of all.
MAX_SUSPENDED_BYTES_PER_CONNECTION: Final = 16 << 20
MAX_SUSPENDED_BYTES: Final = 256 << 20
# POPs that one BATCH_ACK_MESSAGE (200151) acknowledges; some 15 us each.
MAX_BATCH_ACK_ENTRIES: Final = 256
# Messages of one of them: a POP delivers 32 at most, and the count in a checkpoint is a byte.
MAX_BATCH_ACKS: Final = 128
# Queue offsets between the first and the last one of them; a read passes over far fewer.
MAX_BATCH_ACK_BITS: Final = 8_192
# The longest wait of a suspended pull. RocketMQ's clients ask for 15 to 20 s; RocketMQ has no limit.
MAX_SUSPEND_SECONDS: Final = 3_600.0
# Refused commits that the broker lists, as many as an administrator can read; their total counts all.
MAX_FENCED_COMMITS: Final = 1_000
# Queues for which the broker remembers the deliveries to one connection, and to all. If it has to forget a
# queue, it redirects the client's next pull from that queue once more.
MAX_DELIVERIES: Final = 65_536
MAX_ALL_DELIVERIES: Final = 500_000
# Queues of which the broker remembers the latest rewind, those of one reset, and the runs of one rewind. A
# rewind takes some 500 bytes, a run 150.
MAX_REWINDS: Final = 20_000
MAX_REWINDS_OF_RESET: Final = 1_000
MAX_RUNS_OF_REWIND: Final = 8
# Queues of whose fenced resets the broker notifies one connection, and all. A client whose queue is forgotten
# learns of a reset with its next pull or commit.
MAX_NOTIFIED_QUEUES_PER_CONNECTION: Final = 10_000
MAX_NOTIFIED_QUEUES: Final = 200_000
# Topics, pairs of topic and group, and so on, for which VIEW_BROKER_STATS_DATA (315) has figures; some 3 KB
# each, and 1 us of each sample. The limit is for each kind of statistic.
MAX_STATS_ITEMS: Final = 10_000
# About 100 bytes each in the response to QUERY_CONSUME_QUEUE (321).
MAX_CONSUME_QUEUE_ENTRIES: Final = 10_000
# About 150 bytes each in the responses to GET_CONSUME_STATS and GET_BROKER_CONSUME_STATS.
MAX_PROGRESS_QUEUES: Final = 70_000
# Entries of a response, such as queues, that are read at once: about 2 ms.
QUEUES_PER_SLICE: Final = 1_000
# Queues that are searched for a time at once: some ms.
SEARCHES_PER_SLICE: Final = 100
# Consumers that one slice notifies, and about the bytes that it passes to their connections.
CONSUMERS_PER_SLICE: Final = 100
NOTIFIED_BYTES_PER_SLICE: Final = 4 << 20
# Offsets of queues without one that a connection's commits add; they stay when it closes.
MAX_NEW_OFFSETS_PER_CONNECTION: Final = 100_000
# Locks of orderly consumers; a lock takes some 300 bytes.
MAX_QUEUE_LOCKS: Final = 100_000
MAX_QUEUE_LOCKS_PER_CONNECTION: Final = 10_000
# Replies that one connection has sent and whose requesters have not answered yet; the key
# ``replyThreadPoolQueueCapacity`` limits all of them.
MAX_WAITING_REPLIES_PER_CONNECTION: Final = 2_500
# Characters of a client id or broker name that the broker stores with a lock or a heartbeat.
MAX_CLIENT_ID_LENGTH: Final = 1_024


def check_client_id(client_id: str) -> None:
    """Refuse a client id that the broker does not store.

    Raises:
        RequestError: SYSTEM_ERROR (1), the client id is too long.
    """
    if len(client_id) > MAX_CLIENT_ID_LENGTH:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"the client id must have at most {MAX_CLIENT_ID_LENGTH} characters"
        )


def check_room(what: str, count: int, limit: int) -> None:
    """Refuse to add to a full table.

    Args:
        what: the entries, for the remark.

    Raises:
        RequestError: SYSTEM_ERROR (1), the table is full.
    """
    if count >= limit:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"there are {count} {what} already")


def check_list(what: str, count: int) -> None:
    """Refuse a request that creates or changes too many topics or groups.

    Args:
        what: the entries of the list, for the remark.

    Raises:
        RequestError: SYSTEM_ERROR (1), the list is too long.
    """
    if count > MAX_LISTED_CONFIGS:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"the list has {count} {what}: send at most {MAX_LISTED_CONFIGS} in one request",
        )
