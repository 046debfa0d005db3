"""BrokerReport: what one broker answered to a scrape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.metrics.questions import Questions
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.body.stats import ConsumeStats, TopicStatsTable

MASTER_ID: Final = 0
# GET_BROKER_RUNTIME_INFO (28) has this key at RewindMQ's brokers only; they serve what the last step asks.
_OWN_KEY: Final = "usageTopics"
# Keys of a broker that counts messages in flight begin with this; RocketMQ's brokers have none.
POP_REVIVE_KEY: Final = "popRevive_"
# A topic without a message for so long has no rate of the last minute: RocketMQ samples every 10 s.
_IDLE_MS: Final = 120_000
# So many are added up on the event loop; more in a worker thread.
_FEW_QUEUES: Final = 1_000


class BrokerPlace(NamedTuple):
    """Where a broker process stands."""

    cluster: str
    name: str
    broker_id: int
    address: str


class TopicSums(NamedTuple):
    """What a scrape keeps of a topic's queues: 100,000 of them would occupy the garbage collector.

    Attributes:
        end: sum of the queues' maximum offsets.
        last_stored_ms: when the last message was stored, ms since 1970; 0: none was.
    """

    end: int
    last_stored_ms: int


class TopicGroup(NamedTuple):
    """A topic and a group that consumes it."""

    topic: str
    group: str


@dataclass
class BrokerReport:
    """What a broker answered; a part that it did not answer is empty or None.

    Attributes:
        stats: GET_BROKER_RUNTIME_INFO (28).
        rates: VIEW_BROKER_STATS_DATA (315), by the metric that it feeds and the topic, group or nothing.
        topics: by name.
        topic_count: topics of the broker.
        groups: progress of each group, one entry for each topic.
        delays: of groups with a lag, ms since the next message was stored: the longest of the queues.
        members: consumers of each connected group.
        producers: connected producers of each group.
        fenced_commits: commits refused since the broker's start; None: the broker has no fenced resets.
        fenced_resets: fenced resets of each topic and group, summed over the queues.
    """

    place: BrokerPlace
    questions: Questions
    stats: Mapping[str, str] | None = None
    rates: dict[tuple[str, str | TopicGroup], float] = field(default_factory=dict)
    topics: dict[str, TopicSums] = field(default_factory=dict)
    topic_count: int | None = None
    groups: dict[str, list[ConsumeStats]] | None = None
    delays: dict[TopicGroup, float] = field(default_factory=dict)
    members: dict[str, ConsumerConnection] = field(default_factory=dict)
    producers: dict[str, int] = field(default_factory=dict)
    fenced_commits: int | None = None
    fenced_resets: dict[TopicGroup, int] = field(default_factory=dict)

    @property
    def progress(self) -> dict[TopicGroup, ConsumeStats]:
        """Return the progress of each group in each topic that has queues."""
        return {
            TopicGroup(next(iter(stats.offset_table)).topic, group): stats
            for group, entries in (self.groups or {}).items()
            for stats in entries
            if stats.offset_table
        }

    @property
    def has_pop(self) -> bool:
        """Return True if the broker counts popped messages in the groups' progress."""
        return any(key.startswith(POP_REVIVE_KEY) for key in self.stats or ())

    @property
    def broadcasting(self) -> set[str]:
        """Return the groups whose connected consumers broadcast: what is stored of them is from before."""
        return {
            group
            for group, members in self.members.items()
            if members.message_model is MessageModel.BROADCASTING
        }


async def ask_broker(source: ClusterSource, place: BrokerPlace, until: float) -> BrokerReport:
    """Ask one broker, the cheap and important questions first; of a slave, only its runtime information.

    Args:
        until: the monotonic time, in seconds, after which nothing new is asked.
    """
    report = BrokerReport(place, Questions(source, until))
    admin, ask = source.admin, report.questions.ask
    report.stats = await ask(lambda: admin.brokers.fetch_broker_runtime_stats(place.address))
    if report.stats is None or place.broker_id != MASTER_ID:
        return report
    await _broker_rates(admin, report)
    report.groups = await ask(lambda: admin.groups.broker_consume_stats(place.address))
    producers = await ask(lambda: admin.brokers.broker_producers(place.address)) or {}
    report.producers = {group: len(members) for group, members in producers.items()}
    if _OWN_KEY in report.stats:
        await _fenced(admin, report)
    await _topics(source, report)
    await _groups(source, report)
    return report


async def _broker_rates(admin: AdminClient, report: BrokerReport) -> None:
    keys = {"rocketmq_broker_tps": "BROKER_PUT_NUMS", "rocketmq_broker_qps": "BROKER_GET_NUMS"}
    found = await report.questions.ask_each(
        keys,
        lambda key: admin.brokers.view_broker_stats_data(
            report.place.address, keys[key], report.place.cluster
        ),
    )
    report.rates |= {(key, ""): data.stats_minute.tps for key, data in found.items()}


async def _fenced(admin: AdminClient, report: BrokerReport) -> None:
    address = report.place.address
    commits = await report.questions.ask(lambda: admin.resets.fenced_commits(address=address))
    if commits is not None:
        report.fenced_commits = commits[address].total
    offsets = await report.questions.ask(lambda: admin.groups.broker_consumer_offsets(address))
    for key, epochs in ((offsets and offsets.epoch_table) or {}).items():
        topic, _, group = key.partition("@")
        report.fenced_resets[TopicGroup(topic, group)] = sum(epochs.values())


async def _topics(source: ClusterSource, report: BrokerReport) -> None:
    """Ask for every topic's queues, then for the rates of those that got a message lately."""
    admin, now_ms = source.admin, source.runtime.clock.now_ms()
    address, questions = report.place.address, report.questions
    names = await questions.ask(lambda: admin.topics.broker_topics(address))
    if names is None:
        return
    report.topic_count = len(names)
    report.topics = await questions.ask_each(sorted(names), lambda topic: _topic_sums(source, address, topic))
    metrics = {
        "rocketmq_producer_tps": "TOPIC_PUT_NUMS",
        "rocketmq_producer_message_size": "TOPIC_PUT_SIZE",
    }
    last = {topic: sums.last_stored_ms for topic, sums in report.topics.items()}
    report.rates |= {
        (metric, topic): 0.0 for topic in last if now_ms - last[topic] > _IDLE_MS for metric in metrics
    }
    asked = [(metric, topic) for topic in last if now_ms - last[topic] <= _IDLE_MS for metric in metrics]
    found = await questions.ask_each(
        asked, lambda key: admin.brokers.view_broker_stats_data(address, metrics[key[0]], key[1])
    )
    report.rates |= {key: data.stats_minute.tps for key, data in found.items()}


async def _topic_sums(source: ClusterSource, address: str, topic: str) -> TopicSums:
    table = await source.admin.topics.broker_topic_stats(address, topic)
    if len(table.offset_table) > _FEW_QUEUES:
        return await source.runtime.workers.run(_sums, table)
    return _sums(table)


def _sums(table: TopicStatsTable) -> TopicSums:
    rows = table.offset_table.values()
    last_stored_ms = max((row.last_update_timestamp for row in rows), default=0)
    return TopicSums(sum(row.max_offset for row in rows), last_stored_ms)


async def _groups(source: ClusterSource, report: BrokerReport) -> None:
    """Ask for the consumers of every group, for delays where there is a lag, and for what else is counted."""
    admin = source.admin
    address, questions, progress = report.place.address, report.questions, report.progress
    report.members = await questions.ask_each(
        sorted({pair.group for pair in progress}),
        lambda group: admin.groups.examine_consumer_connection_info(group, address),
    )
    # The consumers of a broadcasting group keep their offsets themselves.
    counted = {pair: stats for pair, stats in progress.items() if pair.group not in report.broadcasting}
    lagging = await source.runtime.workers.run(_lagging, counted)
    spans = await questions.ask_each(
        lagging, lambda pair: admin.groups.broker_consume_time_span(address, pair.topic, pair.group)
    )
    report.delays = dict.fromkeys(counted.keys() - set(lagging), 0.0)
    report.delays |= {
        pair: float(max((max(0, span.delay_time) for span in rows), default=0))
        for pair, rows in spans.items()
    }
    sent_back = await questions.ask_each(
        progress,
        lambda pair: admin.brokers.view_broker_stats_data(
            address, "SNDBCK_PUT_NUMS", f"{pair.topic}@{pair.group}"
        ),
    )
    report.rates |= {("rocketmq_send_back_nums", k): float(d.stats_minute.sum) for k, d in sent_back.items()}
    sizes = await questions.ask_each(
        progress,
        lambda pair: admin.brokers.view_broker_stats_data(
            address, "GROUP_GET_SIZE", f"{pair.topic}@{pair.group}"
        ),
    )
    report.rates |= {("rocketmq_consumer_message_size", k): d.stats_minute.tps for k, d in sizes.items()}


def _lagging(progress: Mapping[TopicGroup, ConsumeStats]) -> list[TopicGroup]:
    return [
        pair
        for pair, stats in progress.items()
        if any(row.broker_offset > row.consumer_offset for row in stats.offset_table.values())
    ]
