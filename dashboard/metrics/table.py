"""The table of every metric of ``/metrics``: name, kind, labels and meaning.

docs/metrics.md shows it; ``./scripts/generate_metrics_doc`` writes it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final, NamedTuple

from rewindmq.dashboard.metrics.runtime_info import PREFIX, RUNTIME_KEYS

GAUGE: Final = "gauge"
COUNTER: Final = "counter"

EXPORTER: Final = "rocketmq-exporter"
RELEASE_5: Final = "RocketMQ 5.x"
OWN: Final = "RewindMQ"

# The labels of each subject, as rocketmq-exporter's and 5.x's metrics have them.
RUNTIME: Final = ("cluster", "brokerIP", "brokerHost", "des", "boottime", "broker_version")
BROKER: Final = ("cluster", "brokerIP", "broker")
TOPIC: Final = ("cluster", "broker", "topic")
PROGRESS: Final = ("cluster", "broker", "topic", "group")
PLACE: Final = ("cluster", "broker", "group")
DIFF: Final = ("group", "topic", "countOfOnlineConsumers", "msgModel")
COUNT: Final = ("caddr", "localaddr", "group")
NODE: Final = ("cluster", "node_type", "node_id")
NODE_TOPIC: Final = (*NODE, "topic")
NODE_QUEUE: Final = (*NODE, "queue_id")
NODE_GROUP: Final = (*NODE, "topic", "consumer_group", "is_retry")


class Metric(NamedTuple):
    """A metric.

    Attributes:
        name: as in the exposition; a counter's ends with ``_total``.
        kind: ``GAUGE`` or ``COUNTER``.
        request: what the brokers are asked for it.
        origin: whose name it is.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    request: str
    origin: str


_TPS: Final = "VIEW_BROKER_STATS_DATA (315)"
_PROGRESS: Final = "GET_BROKER_CONSUME_STATS (317)"
_TOPIC: Final = "GET_TOPIC_STATS_INFO (202)"
_RUNTIME: Final = "GET_BROKER_RUNTIME_INFO (28)"
_MEMBERS: Final = "GET_CONSUMER_CONNECTION_LIST (203)"
_SPAN: Final = "QUERY_CONSUME_TIME_SPAN (303)"


def _exporter() -> Iterator[Metric]:
    rows = (
        ("broker_tps", BROKER, "messages stored per second, over the last minute", _TPS),
        ("broker_qps", BROKER, "messages pulled per second, over the last minute", _TPS),
        ("broker_commitlog_diff", BROKER, "bytes of commit log that a slave has not copied yet", _RUNTIME),
        ("producer_tps", TOPIC, "messages stored per second, over the last minute", _TPS),
        ("producer_message_size", TOPIC, "bytes stored per second, over the last minute", _TPS),
        ("producer_offset", TOPIC, "sum of the maximum offsets of the topic's queues", _TOPIC),
        ("topic_retry_offset", TOPIC, "sum of the maximum offsets of a group's retry topic", _TOPIC),
        ("topic_dlq_offset", PLACE, "sum of the maximum offsets of a group's dead letters", _TOPIC),
        ("producer_count", PLACE, "connected producers of a group", "GET_ALL_PRODUCER_INFO (328)"),
        ("consumer_tps", PROGRESS, "messages pulled per second, over the last minute", _PROGRESS),
        ("consumer_message_size", PROGRESS, "bytes pulled per second, over the last minute", _TPS),
        ("consumer_offset", PROGRESS, "sum of the group's stored offsets", _PROGRESS),
        ("send_back_nums", PROGRESS, "messages sent back in the last minute", _TPS),
        (
            "group_get_latency_by_storetime",
            PROGRESS,
            "age of the next message, ms; 0: no lag",
            _SPAN,
        ),
        ("group_diff", DIFF, "messages not yet consumed at all brokers together", _PROGRESS),
        ("group_retrydiff", DIFF, "messages of its retry topic not yet consumed at all brokers", _PROGRESS),
        ("group_dlqdiff", DIFF, "messages of a dead-letter topic not yet consumed", _PROGRESS),
        ("group_count", COUNT, "connected consumers of a group", _MEMBERS),
    )
    for name, labels, meaning, request in rows:
        yield Metric(f"rocketmq_{name}", GAUGE, labels, meaning, request, EXPORTER)
    for key in RUNTIME_KEYS:
        for suffix in key.suffixes:
            yield Metric(PREFIX + suffix, GAUGE, RUNTIME, f"from `{key.key}`", _RUNTIME, EXPORTER)


def _release_5() -> Iterator[Metric]:
    rows = (
        ("messages_in_total", COUNTER, NODE_TOPIC, "messages ever stored in the topic's queues", _TOPIC),
        ("consumer_lag_messages", GAUGE, NODE_GROUP, "messages not yet consumed", _PROGRESS),
        ("consumer_lag_latency", GAUGE, NODE_GROUP, "age of the next message, ms; 0: no lag", _SPAN),
        (
            "consumer_inflight_messages",
            GAUGE,
            NODE_GROUP,
            "messages popped, and neither acknowledged nor revived",
            _PROGRESS,
        ),
        ("pop_revive_lag", GAUGE, NODE_QUEUE, "checkpoints and acks that are not done", _RUNTIME),
        ("pop_revive_latency", GAUGE, NODE_QUEUE, "age of the first of them, ms; 0: there is none", _RUNTIME),
        ("timer_enqueue_lag", GAUGE, NODE, "timer messages not yet in the timer wheel", _RUNTIME),
        ("timer_dequeue_lag", GAUGE, NODE, "timer messages that wait in the timer wheel", _RUNTIME),
        ("timer_dequeue_latency", GAUGE, NODE, "how far their delivery is behind, ms", _RUNTIME),
        ("topic_number", GAUGE, NODE, "topics of the broker", "GET_ALL_TOPIC_CONFIG (21)"),
        ("consumer_group_number", GAUGE, NODE, "consumer groups of the broker", _PROGRESS),
        ("processor_watermark", GAUGE, (*NODE, "processor"), "requests that wait for a thread", _RUNTIME),
        ("storage_flush_behind_bytes", GAUGE, NODE, "bytes not yet flushed to disk", _RUNTIME),
        ("storage_dispatch_behind_bytes", GAUGE, NODE, "bytes not yet in the consume queues", _RUNTIME),
        ("storage_message_reserve_time", GAUGE, NODE, "age of the oldest message, ms", _RUNTIME),
    )
    for name, kind, labels, meaning, request in rows:
        yield Metric(f"rocketmq_{name}", kind, labels, meaning, request, RELEASE_5)


def _own() -> Iterator[Metric]:
    scrape = "the scrape itself"
    fenced, offsets = "LIST_FENCED_COMMITS (190001)", "GET_ALL_CONSUMER_OFFSET (43)"
    cluster_info = "GET_BROKER_CLUSTER_INFO (106)"
    rows = (
        ("namesrv_up", GAUGE, (), "1: a name server answered; 0: none did", cluster_info),
        ("broker_up", GAUGE, (*BROKER, "id"), "1: the broker answered every question within 2 s", scrape),
        ("scrape_unanswered", GAUGE, BROKER, "questions without an answer, or beyond the limits", scrape),
        ("scrape_unreadable", GAUGE, BROKER, "answers that could not be decoded", scrape),
        ("scrape_duration_seconds", GAUGE, (), "how long asking the brokers took", scrape),
        ("fenced_commits_total", COUNTER, BROKER, "commits refused because of a fenced reset", fenced),
        ("fenced_resets_total", COUNTER, PROGRESS, "fenced resets, summed over the queues", offsets),
        ("event_loop_stalls_total", COUNTER, BROKER, "steps of the event loop above 50 ms", _RUNTIME),
        ("event_loop_longest_stall_seconds", GAUGE, BROKER, "the longest step since the start", _RUNTIME),
        ("usage", GAUGE, (*BROKER, "table"), "entries of a bounded table (docs/limits.md)", _RUNTIME),
        ("usage_limit", GAUGE, (*BROKER, "table"), "the bound of that table", _RUNTIME),
    )
    for name, kind, labels, meaning, request in rows:
        yield Metric(f"rewindmq_{name}", kind, labels, meaning, request, OWN)


# Every metric by name, in the order of the exposition.
METRICS: Final = MappingProxyType({each.name: each for each in (*_own(), *_exporter(), *_release_5())})
