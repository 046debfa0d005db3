"""Samples: what the brokers answered, as values of the metrics of ``table.py``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from rewindmq.dashboard.metrics.report import MASTER_ID, POP_REVIVE_KEY, BrokerReport, TopicGroup
from rewindmq.dashboard.metrics.runtime_info import runtime_metrics
from rewindmq.dashboard.metrics.table import COUNTER, METRICS
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.names import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

# Characters of a label: more clients in one group are cut off.
_MAX_LABEL: Final = 1_000
# Java's ordinals, which rocketmq-exporter writes.
_ORDINALS: Final = {MessageModel.BROADCASTING: "0", MessageModel.CLUSTERING: "1"}


class Samples:
    """The values of each metric by its labels; a collector of prometheus-client."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in METRICS}

    def add(self, name: str, labels: Iterable[str], value: float) -> None:
        """Add a value; the last of the same labels stays, and one that is not a number is left out."""
        values = tuple(labels)
        if len(values) != len(METRICS[name].labels):
            raise ValueError(f"{name} has the labels {METRICS[name].labels}, not {values}")
        if math.isfinite(value):
            self._values[name][values] = value

    def collect(self) -> Iterator[Family]:
        """Yield each metric that has values."""
        for metric in METRICS.values():
            values = self._values[metric.name]
            if not values:
                continue
            make = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
            family = make(metric.name, metric.meaning.replace("`", ""), labels=metric.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family


def add_reports(samples: Samples, reports: Sequence[BrokerReport], now_ms: int) -> None:
    """Add every value that the brokers' answers hold."""
    masters = [report for report in reports if report.place.broker_id == MASTER_ID]
    for report in reports:
        _add_broker(samples, report, now_ms)
    _add_commit_log_diffs(samples, reports)
    broadcasting = set[str]().union(*(report.broadcasting for report in masters))
    for report in masters:
        _add_topics(samples, report)
        _add_progress(samples, report, broadcasting)
    _add_members(samples, masters)
    # A sum without the part of a broker that did not answer would look like a lag that went away.
    if all(report.groups is not None for report in masters):
        _add_diffs(samples, masters, broadcasting)


def _add_broker(samples: Samples, report: BrokerReport, now_ms: int) -> None:
    place = report.place
    broker = (place.cluster, place.address, place.name)
    is_up = report.stats is not None and not report.questions.is_silent
    samples.add("rewindmq_broker_up", (*broker, str(place.broker_id)), float(is_up))
    samples.add("rewindmq_scrape_unanswered", broker, report.questions.unanswered)
    samples.add("rewindmq_scrape_unreadable", broker, report.questions.unreadable)
    for metric in ("rocketmq_broker_tps", "rocketmq_broker_qps"):
        if (rate := report.rates.get((metric, ""))) is not None:
            samples.add(metric, broker, rate)
    if report.fenced_commits is not None:
        samples.add("rewindmq_fenced_commits_total", broker, report.fenced_commits)
    if report.stats is not None:
        _add_runtime(samples, report, report.stats, now_ms)


def _add_runtime(samples: Samples, report: BrokerReport, stats: Mapping[str, str], now_ms: int) -> None:
    place = report.place
    broker = (place.cluster, place.address, place.name)
    described = (stats.get(key, "") for key in ("brokerVersionDesc", "bootTimestamp", "brokerVersion"))
    labels = (place.cluster, place.address, place.name, *described)
    found = runtime_metrics(stats)
    for name, value in found.items():
        samples.add(name, labels, value)
    for key, name, factor in (
        ("eventLoopStallCount", "rewindmq_event_loop_stalls_total", 1.0),
        ("eventLoopWorstStallMs", "rewindmq_event_loop_longest_stall_seconds", 0.001),
    ):
        if (number := _number(stats.get(key, ""))) is not None:
            samples.add(name, broker, number * factor)
    for key, value_text in stats.items():
        if key.startswith("usage"):
            used, _, limit = value_text.partition("/")
            if (a := _number(used)) is not None and (b := _number(limit)) is not None:
                samples.add("rewindmq_usage", (*broker, key.removeprefix("usage")), a)
                samples.add("rewindmq_usage_limit", (*broker, key.removeprefix("usage")), b)
    if place.broker_id == MASTER_ID:
        _add_release_5(samples, report, found, now_ms)


def _add_release_5(samples: Samples, report: BrokerReport, found: dict[str, float], now_ms: int) -> None:
    node = _node(report)

    def of(suffix: str) -> float | None:
        return found.get(f"rocketmq_brokeruntime_{suffix}")

    for processor, suffix in (
        ("send", "send_threadpool_queue_size"),
        ("pull", "pull_threadpoolqueue_size"),
        ("query", "query_threadpoolqueue_size"),
    ):
        if (size := of(suffix)) is not None:
            samples.add("rocketmq_processor_watermark", (*node, processor), size)
    for name, suffix in (
        ("rocketmq_storage_flush_behind_bytes", "remain_howmanydata_toflush"),
        ("rocketmq_storage_dispatch_behind_bytes", "dispatch_behind_bytes"),
    ):
        if (size := of(suffix)) is not None:
            samples.add(name, node, size)
    earliest = of("earliest_message_timestamp")
    if earliest is not None and earliest > 0:
        samples.add("rocketmq_storage_message_reserve_time", node, max(0, now_ms - earliest))
    _add_pop_and_timers(samples, node, report.stats or {})
    if report.topic_count is not None:
        samples.add("rocketmq_topic_number", node, report.topic_count)
    if report.groups is not None:
        samples.add("rocketmq_consumer_group_number", node, len(report.groups))


def _add_pop_and_timers(samples: Samples, node: tuple[str, str, str], stats: Mapping[str, str]) -> None:
    for key, name, factor in (
        ("timerOffsetBehind", "rocketmq_timer_enqueue_lag", 1.0),
        ("timerCongestNum", "rocketmq_timer_dequeue_lag", 1.0),
        # Seconds; the metric has milliseconds.
        ("timerReadBehind", "rocketmq_timer_dequeue_latency", 1_000.0),
    ):
        if (number := _number(stats.get(key, ""))) is not None:
            samples.add(name, node, number * factor)
    for key, text in stats.items():
        if key.startswith(POP_REVIVE_KEY):
            labels = (*node, key.removeprefix(POP_REVIVE_KEY)[:_MAX_LABEL])
            records, _, age = text.partition(",")
            for name, part in (("rocketmq_pop_revive_lag", records), ("rocketmq_pop_revive_latency", age)):
                if (number := _number(part)) is not None:
                    samples.add(name, labels, number)


def _add_commit_log_diffs(samples: Samples, reports: Sequence[BrokerReport]) -> None:
    """Add how far each slave is behind its master, if both said where their log ends."""
    ends = {
        (report.place.cluster, report.place.name, report.place.broker_id): end
        for report in reports
        if (end := _number((report.stats or {}).get("commitLogMaxOffset", ""))) is not None
    }
    for report in reports:
        cluster, name, broker_id, address = report.place
        own, master = ends.get((cluster, name, broker_id)), ends.get((cluster, name, MASTER_ID))
        if broker_id != MASTER_ID and own is not None and master is not None:
            samples.add("rocketmq_broker_commitlog_diff", (cluster, address, name), master - own)


def _add_topics(samples: Samples, report: BrokerReport) -> None:
    place, node = report.place, _node(report)
    for topic, (end, _) in report.topics.items():
        labels = (place.cluster, place.name, topic)
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            samples.add("rocketmq_topic_retry_offset", labels, end)
        elif topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
            group = topic.removeprefix(DLQ_GROUP_TOPIC_PREFIX)
            samples.add("rocketmq_topic_dlq_offset", (place.cluster, place.name, group), end)
        else:
            samples.add("rocketmq_producer_offset", labels, end)
        samples.add("rocketmq_messages_in_total", (*node, topic), end)
    for (metric, key), rate in report.rates.items():
        if isinstance(key, TopicGroup):
            samples.add(metric, (place.cluster, place.name, *key), rate)
        elif key:
            samples.add(metric, (place.cluster, place.name, key), rate)


def _add_progress(samples: Samples, report: BrokerReport, broadcasting: Container[str]) -> None:
    """Add what brokers store of each group; nothing of groups whose consumers keep their own offsets."""
    place, node = report.place, _node(report)
    has_pop = report.has_pop
    for pair, stats in report.progress.items():
        labels = (place.cluster, place.name, *pair)
        samples.add("rocketmq_consumer_tps", labels, stats.consume_tps)
        if pair.group in broadcasting:
            continue
        stored = sum(row.consumer_offset for row in stats.offset_table.values())
        samples.add("rocketmq_consumer_offset", labels, stored)
        samples.add("rocketmq_consumer_lag_messages", _node_group(node, pair), stats.total_diff())
        if has_pop:
            inflight = sum(row.pop_inflight or 0 for row in stats.offset_table.values())
            samples.add("rocketmq_consumer_inflight_messages", _node_group(node, pair), inflight)
    for pair, delay in report.delays.items():
        if pair.group in broadcasting:
            continue
        labels = (place.cluster, place.name, *pair)
        samples.add("rocketmq_group_get_latency_by_storetime", labels, delay)
        samples.add("rocketmq_consumer_lag_latency", _node_group(node, pair), delay)
    for pair, count in report.fenced_resets.items():
        samples.add("rewindmq_fenced_resets_total", (place.cluster, place.name, *pair), count)
    for group, count in report.producers.items():
        samples.add("rocketmq_producer_count", (place.cluster, place.name, group), count)


def _add_members(samples: Samples, masters: Sequence[BrokerReport]) -> None:
    """Add the consumers of each group; one without any has 0, and empty addresses."""
    known = _members(masters)
    for group in {pair.group for report in masters for pair in report.progress}:
        connections = known[group].connection_set if group in known else []
        addresses = sorted((each.client_addr, each.client_id) for each in connections)
        caddr = ",".join(address for address, _ in addresses)[:_MAX_LABEL]
        local = ",".join(client_id for _, client_id in addresses)[:_MAX_LABEL]
        samples.add("rocketmq_group_count", (caddr, local, group), len(connections))


def _add_diffs(samples: Samples, masters: Sequence[BrokerReport], broadcasting: Container[str]) -> None:
    diffs: Counter[TopicGroup] = Counter()
    for report in masters:
        for pair, stats in report.progress.items():
            diffs[pair] += stats.total_diff()
    known = _members(masters)
    for (topic, group), diff in diffs.items():
        members = known.get(group)
        model = members.message_model if members else MessageModel.CLUSTERING
        if group in broadcasting:
            continue
        online = str(len(members.connection_set)) if members else "0"
        name = "rocketmq_group_diff"
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            name = "rocketmq_group_retrydiff"
        elif topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
            name = "rocketmq_group_dlqdiff"
        samples.add(name, (group, topic, online, _ORDINALS[model]), diff)


def _members(masters: Sequence[BrokerReport]) -> dict[str, ConsumerConnection]:
    """Return the consumers of each connected group as the broker with the most of them knows it."""
    found: dict[str, ConsumerConnection] = {}
    for report in masters:
        for group, members in report.members.items():
            if group not in found or len(members.connection_set) > len(found[group].connection_set):
                found[group] = members
    return found


def _node(report: BrokerReport) -> tuple[str, str, str]:
    return report.place.cluster, "broker", report.place.name


def _node_group(node: tuple[str, str, str], pair: TopicGroup) -> tuple[str, ...]:
    is_retry = pair.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    return (*node, pair.topic, pair.group, str(is_retry).lower())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
