"""Writes docs/limits.md: every limit on what a peer may send, use or store, from the code that applies it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.namesrv.config import NamesrvConfig

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "limits.md"

_SERVER_KEYS: Final = (BrokerConfig, NamesrvConfig)
_KEY_OWNERS: Final = (BrokerConfig, StoreConfig, NamesrvConfig)


class Limit(NamedTuple):
    """One row of the page.

    Attributes:
        what: what is limited.
        source: ``module:CONSTANT`` below ``rewindmq``, or a configuration key in camelCase.
        unit: of the value; for a key without a default, how the value is found.
        beyond: what happens beyond the limit.
        usage: the key of GET_BROKER_RUNTIME_INFO (28) that shows how full it is.
    """

    what: str
    source: str
    unit: str
    beyond: str
    usage: str = ""


_CLOSED: Final = "the connection is closed"
_REFUSED: Final = "SYSTEM_ERROR (1)"
_BUSY: Final = "SYSTEM_BUSY (2)"
_ILLEGAL: Final = "MESSAGE_ILLEGAL (13)"
_OLDEST: Final = "the connections that have held bytes longest are closed"

_FRAMES: Final = (
    Limit("connections of all peers", "serverMaxConnections", "what the open files permit", _CLOSED),
    Limit(
        "the same, at most, by default",
        "protocol.limits:MAX_CONNECTIONS",
        "connections",
        _CLOSED,
        "usageConnections",
    ),
    Limit("connections of one IP address", "serverMaxConnectionsPerAddress", "half of all", _CLOSED),
    Limit("frame", "protocol.limits:MAX_FRAME_BYTES", "bytes", _CLOSED),
    Limit("header of a request", "protocol.limits:MAX_HEADER_BYTES", "bytes", _CLOSED),
    Limit("ext fields of a header", "protocol.limits:MAX_EXT_FIELDS", "fields", _CLOSED),
    Limit(
        "values, commas and escapes in a header that is not strict JSON",
        "protocol.limits:MAX_HEADER_VALUES",
        "values",
        _CLOSED,
    ),
    Limit(
        "body of HEART_BEAT (34), of lists of topics and groups (18, 225) and of queues to lock (41, 42)",
        "protocol.codec.request_limits:MAX_CLIENT_BODY_BYTES",
        "bytes",
        _REFUSED,
    ),
    Limit(
        "body of other requests without messages, except 103 and 220",
        "protocol.codec.request_limits:MAX_REQUEST_BODY_BYTES",
        "bytes",
        _REFUSED,
    ),
    Limit(
        "values and keys in the body of a request, about",
        "protocol.codec.request_limits:MAX_REQUEST_VALUES",
        "values",
        _REFUSED,
    ),
    Limit(
        "values of REGISTER_BROKER (103), RESET_CONSUMER_CLIENT_OFFSET (220) and a response to 221",
        "protocol.codec.request_limits:MAX_TABLE_VALUES",
        "values",
        _REFUSED,
    ),
    Limit("nesting of a structured body", "protocol.limits:MAX_BODY_DEPTH", "levels", _REFUSED),
    Limit("inflated body", "protocol.limits:MAX_INFLATED_BODY_BYTES", "bytes", "the message is unreadable"),
    Limit("rest of a frame after its first bytes", "serverFrameTimeoutMillis", "ms", _CLOSED),
    Limit(
        "unfinished frames of all connections",
        "serverMaxUnfinishedFrameBytes",
        "bytes",
        _OLDEST,
        "usageUnfinishedFrameBytes",
    ),
    Limit(
        "responses that one peer has not read", "protocol.remoting.stream:MAX_UNSENT_BYTES", "bytes", _CLOSED
    ),
    Limit("responses that peers have not read", "serverMaxUnreadBytes", "bytes", _OLDEST, "usageUnreadBytes"),
    Limit(
        "requests in progress of one connection, suspended pulls included",
        "protocol.remoting.dispatch:MAX_REQUESTS_IN_PROGRESS",
        "requests",
        _BUSY,
    ),
    Limit(
        "their bodies and fields, except of suspended pulls and waiting sends",
        "protocol.remoting.dispatch:MAX_REQUEST_BYTES_IN_PROGRESS",
        "bytes",
        _BUSY,
    ),
    Limit(
        "requests to one peer that wait for a response",
        "protocol.remoting.pending:MAX_PENDING",
        "requests",
        "the new request fails",
    ),
    Limit("connection without a byte", "protocol.remoting.endpoint:IDLE_SECONDS", "s", "it is closed"),
    Limit(
        "closed connection that still sends", "protocol.remoting.stream:LINGER_SECONDS", "s", "it is reset"
    ),
)
_MESSAGES: Final = (
    Limit("body of a message, and of a batch", "maxMessageSize", "bytes", _ILLEGAL),
    Limit("messages of a batch", "broker.limits:MAX_BATCH_MESSAGES", "messages", _ILLEGAL),
    Limit(
        "messages of a batch that are stored at once",
        "broker.limits:MAX_BATCH_PART_MESSAGES",
        "messages",
        "several steps",
    ),
    Limit("properties of a message", "protocol.limits:MAX_PROPERTIES_BYTES", "bytes", _ILLEGAL),
    Limit("name of a topic", "protocol.limits:MAX_TOPIC_LENGTH", "characters", _REFUSED),
    Limit("name of a group", "protocol.limits:MAX_GROUP_LENGTH", "characters", _REFUSED),
    Limit("client id; broker name of a lock", "broker.limits:MAX_CLIENT_ID_LENGTH", "characters", _REFUSED),
    Limit(
        "text whose hash is remembered", "protocol.text:MAX_REMEMBERED_LENGTH", "characters", "computed again"
    ),
    Limit(
        "remembered hashes of texts", "protocol.text:MAX_REMEMBERED_HASHES", "texts", "all are computed again"
    ),
)
_TABLES: Final = (
    Limit("topics", "broker.limits:MAX_TOPICS", "topics", _REFUSED, "usageTopics"),
    Limit("topics or groups in one list (18, 225)", "broker.limits:MAX_LISTED_CONFIGS", "entries", _REFUSED),
    Limit("queues of a topic", "protocol.limits:MAX_QUEUE_NUMS", "queues", _REFUSED),
    Limit("topics and groups with a mode (401)", "broker.limits:MAX_REQUEST_MODES", "pairs", _REFUSED),
    Limit(
        "queues of the topics that consumers of QUERY_ASSIGNMENT (400) read",
        "broker.limits:MAX_ROUTED_QUEUES",
        "queues",
        "a topic is forgotten, a name server is asked again",
    ),
    Limit("queues that groups pop in order", "broker.limits:MAX_ORDER_INFOS", "queues", _REFUSED),
    Limit("attempt id of such a POP", "broker.limits:MAX_ATTEMPT_ID_LENGTH", "characters", _REFUSED),
    Limit("consumer groups", "broker.limits:MAX_GROUPS", "groups", _REFUSED, "usageConsumerGroups"),
    Limit(
        "consumer offsets",
        "broker.store.tables.consumer_offset:MAX_OFFSETS",
        "offsets",
        _REFUSED,
        "usageConsumerOffsets",
    ),
    Limit(
        "offsets that one connection adds",
        "broker.limits:MAX_NEW_OFFSETS_PER_CONNECTION",
        "offsets",
        _REFUSED,
    ),
    Limit(
        "groups online, of producers and of consumers",
        "broker.limits:MAX_GROUPS",
        "groups",
        _REFUSED,
        "usageOnlineProducerGroups, usageOnlineConsumerGroups",
    ),
    Limit(
        "of these, groups of one connection",
        "broker.limits:MAX_GROUPS_PER_CONNECTION",
        "groups",
        _REFUSED,
    ),
    Limit(
        "connections in groups, of producers and of consumers",
        "broker.limits:MAX_GROUP_CHANNELS",
        "pairs",
        _REFUSED,
        "usageOnlineProducers, usageOnlineConsumers",
    ),
    Limit(
        "subscriptions that one connection has set",
        "broker.limits:MAX_SUBSCRIPTION_BYTES_PER_CONNECTION",
        "bytes",
        _REFUSED,
    ),
    Limit(
        "all subscriptions",
        "broker.limits:MAX_SUBSCRIPTION_BYTES",
        "bytes",
        _REFUSED,
        "usageSubscriptionBytes",
    ),
    Limit("client without heartbeat", "broker.clients.channel:CHANNEL_EXPIRED_SECONDS", "s", "it is closed"),
    Limit(
        "queue locks of one connection",
        "broker.limits:MAX_QUEUE_LOCKS_PER_CONNECTION",
        "locks",
        "not granted",
    ),
    Limit(
        "all queue locks",
        "broker.limits:MAX_QUEUE_LOCKS",
        "locks",
        "locks of closed connections go; else not granted",
        "usageQueueLocks",
    ),
    Limit(
        "lock that is not refreshed",
        "broker.clients.queue_locks:LOCK_SECONDS",
        "s",
        "another client may take it",
    ),
    Limit(
        "replies of one connection that requesters have not answered",
        "broker.limits:MAX_WAITING_REPLIES_PER_CONNECTION",
        "replies",
        _BUSY,
    ),
    Limit(
        "replies of all connections that requesters have not answered",
        "replyThreadPoolQueueCapacity",
        "replies",
        _BUSY,
        "usageWaitingReplies",
    ),
    Limit(
        "wait for a requester's answer to a reply",
        "broker.clients.channel:CALL_CLIENT_SECONDS",
        "s",
        "SYSTEM_ERROR (1)",
    ),
    Limit(
        "queues of one connection whose deliveries after fenced resets are remembered",
        "broker.limits:MAX_DELIVERIES",
        "queues",
        "the oldest is forgotten, its next pull redirected",
    ),
    Limit(
        "queues of all connections whose deliveries after fenced resets are remembered",
        "broker.limits:MAX_ALL_DELIVERIES",
        "queues",
        "as above; a connection whose deliveries are forgotten is redirected again",
        "usageDeliveries",
    ),
    Limit(
        "queues of whose fenced resets one connection is notified",
        "broker.limits:MAX_NOTIFIED_QUEUES_PER_CONNECTION",
        "queues",
        "no notification for the oldest",
    ),
    Limit(
        "queues of whose fenced resets all connections are notified",
        "broker.limits:MAX_NOTIFIED_QUEUES",
        "queues",
        "no notification",
        "usageNotifiedQueues",
    ),
    Limit(
        "fenced commits listed", "broker.limits:MAX_FENCED_COMMITS", "commits", "the oldest leave the list"
    ),
    Limit(
        "queues whose latest rewind is remembered",
        "broker.limits:MAX_REWINDS",
        "queues",
        "the oldest is forgotten",
    ),
    Limit(
        "queues of one reset whose rewinds are remembered",
        "broker.limits:MAX_REWINDS_OF_RESET",
        "queues",
        "a watch proves the others as at RocketMQ",
    ),
    Limit(
        "runs of a rewind that are remembered",
        "broker.limits:MAX_RUNS_OF_REWIND",
        "runs",
        "the oldest is forgotten",
    ),
    Limit(
        "topics or groups in a statistic",
        "broker.limits:MAX_STATS_ITEMS",
        "keys",
        "not counted; keys idle for 30 minutes go",
    ),
)
_PULLS: Final = (
    Limit(
        "messages that a pull asks for", "protocol.limits:MAX_PULL_MESSAGES", "messages", "fewer are returned"
    ),
    Limit("messages returned, recent ones", "maxTransferCountOnMessageInMemory", "messages", "the pull ends"),
    Limit("their bytes", "maxTransferBytesOnMessageInMemory", "bytes", "the pull ends"),
    Limit("messages returned, old ones", "maxTransferCountOnMessageInDisk", "messages", "the pull ends"),
    Limit("their bytes", "maxTransferBytesOnMessageInDisk", "bytes", "the pull ends"),
    Limit(
        "bytes of any pull or query", "protocol.limits:MAX_RESPONSE_BODY_BYTES", "bytes", "it ends earlier"
    ),
    Limit("messages of a POP", "broker.pop.validator:MAX_POP_MESSAGES", "messages", "INVALID_PARAMETER (29)"),
    Limit("POPs in a BATCH_ACK_MESSAGE (200151)", "broker.limits:MAX_BATCH_ACK_ENTRIES", "POPs", _REFUSED),
    Limit("messages acknowledged of each", "broker.limits:MAX_BATCH_ACKS", "messages", _REFUSED),
    Limit("queue offsets that they span", "broker.limits:MAX_BATCH_ACK_BITS", "offsets", _REFUSED),
    Limit("suspended POPs of a group and queue", "popPollingSize", "requests", "POLLING_FULL (209)"),
    Limit("all suspended POPs", "maxPopPollingSize", "requests", "POLLING_FULL (209)"),
    Limit("suspended pull or POP", "broker.limits:MAX_SUSPEND_SECONDS", "s", "19 or 210"),
    Limit(
        "suspended pulls and POPs of one connection",
        "broker.limits:MAX_SUSPENDED_BYTES_PER_CONNECTION",
        "bytes",
        f"{_BUSY}; POLLING_FULL (209)",
    ),
    Limit(
        "all suspended pulls and POPs",
        "broker.limits:MAX_SUSPENDED_BYTES",
        "bytes",
        f"{_BUSY}; POLLING_FULL (209)",
        "usageSuspendedPullBytes",
    ),
    Limit(
        "SQL92 expression",
        "broker.filter.parser:MAX_EXPRESSION_LENGTH",
        "characters",
        "SUBSCRIPTION_PARSE_FAILED (23)",
    ),
    Limit("its nesting", "broker.filter.parser:MAX_NESTING", "levels", "SUBSCRIPTION_PARSE_FAILED (23)"),
)
_ANSWERS: Final = (
    Limit(
        "queues of GET_CONSUME_STATS (208) and GET_BROKER_CONSUME_STATS (317)",
        "broker.limits:MAX_PROGRESS_QUEUES",
        "queues",
        _REFUSED,
    ),
    Limit(
        "entries of QUERY_CONSUME_QUEUE (321)",
        "broker.limits:MAX_CONSUME_QUEUE_ENTRIES",
        "entries",
        "fewer are returned",
    ),
    Limit(
        "messages of QUERY_MESSAGE (12)", "broker.store.layout.index:MAX_MSGS_NUM_BATCH", "messages", "fewer"
    ),
    Limit("slots of an index file", "maxHashSlotNum", "slots", "–"),
    Limit("entries of an index file", "maxIndexNum", "entries", "a new file begins"),
    Limit("half message without an outcome", "transactionCheckMax", "checks", "it is discarded"),
    Limit(
        "connections at the HA port",
        "broker.ha.access:MAX_SLAVES",
        "connections",
        "one that does not count as a slave is closed, else the new one",
    ),
    Limit("HA connection without a report", "broker.ha.connection:FIRST_REPORT_SECONDS", "s", "it is closed"),
    Limit(
        "queue id of a record from a master",
        "broker.store.messages.replica:MAX_QUEUE_ID",
        "as the largest",
        "the slave stops following",
    ),
    Limit("log sent to a slave at a time", "haTransferBatchSize", "bytes", "–"),
    Limit("the same, at most", "protocol.ha_frame:MAX_TRANSFER_BYTES", "bytes", "ConfigError"),
)
_NAMESRV: Final = (
    Limit("topics", "namesrv.route_info:MAX_TOPICS", "topics", _REFUSED),
    Limit("brokers, clusters, ids and addresses", "namesrv.route_info:MAX_BROKERS", "entries", _REFUSED),
    Limit(
        "addresses of brokers that one connection registers",
        "namesrv.route_info:MAX_BROKERS_PER_CONNECTION",
        "entries",
        _REFUSED,
    ),
    Limit("pairs of a topic and a broker", "namesrv.route_info:MAX_TOPIC_QUEUES", "pairs", _REFUSED),
    Limit(
        "of these, pairs of the brokers of one connection",
        "namesrv.route_info:MAX_TOPIC_QUEUES_PER_CONNECTION",
        "pairs",
        _REFUSED,
    ),
    Limit("queues of a topic", "namesrv.handlers.register_broker:MAX_QUEUE_NUMS", "queues", _REFUSED),
    Limit("address", "namesrv.handlers.register_broker:MAX_ADDRESS_LENGTH", "characters", _REFUSED),
    Limit("unpacked registration", "namesrv.registration_body:MAX_UNPACKED_BYTES", "bytes", _REFUSED),
    Limit("key-value pairs", "namesrv.kv_config:MAX_ENTRIES", "pairs", _REFUSED),
    Limit("their names", "namesrv.kv_config:MAX_NAME_LENGTH", "characters", _REFUSED),
    Limit("their values", "namesrv.kv_config:MAX_VALUE_LENGTH", "characters", _REFUSED),
    Limit("all of them", "namesrv.kv_config:MAX_TABLE_BYTES", "bytes", _REFUSED),
)
_DASHBOARD: Final = (
    Limit("connections of all visitors", "dashboard.connections:MAX_CONNECTIONS", "connections", _CLOSED),
    Limit("head of a request", "dashboard.connections:HEAD_SECONDS", "s", _CLOSED),
    Limit("form", "dashboard.web.forms:MAX_FORM_BYTES", "bytes", "413"),
    Limit("whole form from its head on", "dashboard.web.forms:FORM_SECONDS", "s", "408"),
    Limit(
        "unfinished forms of all visitors",
        "dashboard.web.forms:MAX_UNFINISHED_BYTES",
        "bytes",
        "503 for the forms that have been unfinished for longest",
    ),
    Limit(
        "forms above 64 KiB that are worked on at once", "dashboard.web.forms:MAX_LARGE", "forms", "they wait"
    ),
    Limit(
        "queues of a reset that a page carries out",
        "dashboard.data.reset_previews:MAX_QUEUES",
        "queues",
        "the page names the command",
    ),
    Limit(
        "what a form sends back of its preview",
        "dashboard.data.reset_previews:MAX_EXPECTED_BYTES",
        "bytes",
        "nothing is reset",
    ),
    Limit(
        "resets that are watched at once",
        "dashboard.resets.service:MAX_RUNNING",
        "resets",
        "nothing is reset",
    ),
    Limit(
        "samples in a reset's record, of one queue",
        "dashboard.resets.recorder:MAX_SEEN",
        "samples",
        "later ones are left out",
    ),
    Limit(
        "the same, of all queues, if each has eight",
        "dashboard.resets.recorder:MAX_ALL_SEEN",
        "samples",
        "later ones are left out",
    ),
    Limit(
        "steps in a reset's record",
        "dashboard.resets.recorder:MAX_EVENTS",
        "steps",
        "later ones are left out",
    ),
    Limit(
        "ended resets without `--history`",
        "dashboard.resets.history:MAX_IN_MEMORY",
        "records",
        "the oldest is forgotten",
    ),
    Limit(
        "resets listed with `--history`",
        "dashboard.resets.history:MAX_LISTED",
        "records",
        "the oldest stay as files",
    ),
    Limit("file of a record", "dashboard.resets.history:MAX_FILE_BYTES", "bytes", "it counts as damaged"),
)

SECTIONS: Final[Mapping[str, tuple[Limit, ...]]] = MappingProxyType(
    {
        "Connections of broker and name server": _FRAMES,
        "Messages and names": _MESSAGES,
        "Tables of the broker": _TABLES,
        "Pulls": _PULLS,
        "Other requests, store and slaves": _ANSWERS,
        "Name server": _NAMESRV,
        "Dashboard": _DASHBOARD,
    }
)

_PREAMBLE: Final = """\
# Limits

Generated by `./scripts/generate_limits_doc` from the code that applies the limits; do not edit.

Every table whose keys a peer chooses has a limit. A table that belongs to connections also has a share for
each connection, so one peer cannot fill it alone. What a connection has put into such a table is removed when
the connection closes. Queue locks are an exception: they stay until they expire, as in RocketMQ, because the
client may return. But the locks of closed connections are the first to go if the table is full. Topics,
consumer groups and offsets belong to no connection and stay. A client that may create topics can fill their
table: set `autoCreateTopicEnable` and `autoCreateSubscriptionGroup` to false if you do not trust the clients.

A refused request changes nothing. The bytes of subscriptions and suspended pulls are estimates of their
memory, from the lengths of their texts. Above the limit for unfinished frames, or for unread responses, the
server closes the connections that have held bytes longest. A peer that sends the rest of its frames and reads
its responses holds no bytes for long, so it is not among them.

Column 4 names a key of [broker.conf](broker.md#brokerconf) or of [the name server](namesrv.md), whose default
column 2 shows, or a constant. Column 5 names the key of GET_BROKER_RUNTIME_INFO (28) that shows `used/limit`.
"""


def render() -> str:
    """Return the whole document."""
    lines = [_PREAMBLE]
    for heading, limits in SECTIONS.items():
        lines += [f"## {heading}\n", *_table(limits), ""]
    return "\n".join(lines)


def _table(limits: Iterable[Limit]) -> Iterable[str]:
    yield "| what | limit | beyond it | set by | fill |"
    yield "|---|---|---|---|---|"
    for limit in limits:
        usage = ", ".join(f"`{key}`" for key in limit.usage.split(", ") if key)
        yield f"| {limit.what} | {_value(limit)} | {limit.beyond} | {_set_by(limit.source)} | {usage} |"


def _value(limit: Limit) -> str:
    value = value_of(limit.source)
    if value is None:
        return limit.unit
    assert isinstance(value, int | float), limit
    return f"{value:,.15g} {limit.unit}"


def _set_by(source: str) -> str:
    module, _, constant = source.rpartition(":")
    if not module:
        return f"`{source}`"
    return f"`{constant}` in `{module.replace('.', '/')}.py`"


def value_of(source: str) -> object:
    """Return the value of a constant, or a key's default."""
    module, _, constant = source.rpartition(":")
    if module:
        return getattr(importlib.import_module(f"rewindmq.{module}"), constant)
    (default,) = {
        field.default
        for owner in _KEY_OWNERS
        for field in msgspec.structs.fields(owner)
        if field.encode_name == source
    }
    return default


if __name__ == "__main__":
    TARGET.write_text(render())
