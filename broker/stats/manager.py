"""``BrokerStatsManager``: the statistics that VIEW_BROKER_STATS_DATA (315) returns, by name and key."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Final, NamedTuple

from rewindmq.broker.stats.item import LatencyItem, StatsSnapshot
from rewindmq.broker.stats.item_set import StatsItemSet
from rewindmq.broker.stats.pull_counts import PullCounts
from rewindmq.broker.stats.put_latencies import PutLatencies
from rewindmq.broker.store.consume_queue.put_counts import QueuePuts
from rewindmq.protocol.names import SCHEDULE_TOPIC, SYSTEM_TOPICS, is_system_topic

SAMPLE_SECONDS: Final = 10.0
# A window of an hour has a sample every ten minutes, one of a day every hour.
_SAMPLES_PER_TEN_MINUTES: Final = 60
_SAMPLES_PER_HOUR: Final = 360
_TEN_MINUTES: Final = 600.0
# About 2 ms in the slice of an hour.
_ITEMS_PER_SLICE: Final = 500
# 5.3.3 BrokerStatsManager#cleanAllResource: a shorter limit than this means half an hour.
_SHORTEST_IDLE_MINUTES: Final = 10
_IDLE_MINUTES: Final = 30
# MixAll.SCHEDULE_CONSUMER_GROUP.
_SCHEDULE_GROUP: Final = "SCHEDULE_CONSUMER"
# 5.3.3 BrokerStatsManager.StatsType.
_SEND_BACK_TO_DLQ: Final = "SEND_BACK_TO_DLQ"


class StatsData(NamedTuple):
    """The three windows of one statistic."""

    minute: StatsSnapshot
    hour: StatsSnapshot
    day: StatsSnapshot


class BrokerStatsManager:
    """Items by the name of their statistic and their key.

    Attributes:
        topic_puts: by ``topic``: sends to the topic, and their messages and bytes.
        pulls: counts the pulls that found messages.
        has_added: the broker shows the statistics that 5.x added.
        put_latencies: by queue, how long sends take; None unless ``has_added``.

    Args:
        cluster: the key of the statistics of the whole broker.
        deletes: ``autoDeleteUnusedStats``: the items of a deleted topic or group go, too.
        idle_minutes: ``maxStatsIdleTimeInMinutes``.
        has_added: see the attribute.
        system_topics: see ``BrokerProfile``.
    """

    def __init__(
        self,
        cluster: str,
        *,
        deletes: bool,
        idle_minutes: int = -1,
        has_added: bool = False,
        system_topics: frozenset[str] = SYSTEM_TOPICS,
    ) -> None:
        self._cluster = cluster
        self._deletes = deletes
        self.has_added = has_added
        self._idle_limit = _idle_limit(idle_minutes)
        self._samples = 0
        self.topic_puts = StatsItemSet(
            "TOPIC_PUT_NUMS", partial(is_system_topic, system_topics=system_topics)
        )
        self._queue_puts = StatsItemSet("QUEUE_PUT_NUMS")
        self._queue_gets = StatsItemSet("QUEUE_GET_NUMS")
        self._group_gets = StatsItemSet(
            "GROUP_GET_NUMS", partial(_is_of_system_topic, system_topics=system_topics)
        )
        self._get_latencies = StatsItemSet("GROUP_GET_LATENCY", make=LatencyItem)
        self._send_backs = StatsItemSet("SNDBCK_PUT_NUMS")
        self._dead_letters = StatsItemSet("SNDBCK2DLQ_TIMES")
        self._group_check_points = StatsItemSet("GROUP_CK_NUMS")
        self._group_acks = StatsItemSet("GROUP_ACK_NUMS")
        self._broker_check_points = StatsItemSet("BROKER_CK_NUMS")
        self._broker_acks = StatsItemSet("BROKER_ACK_NUMS")
        self.put_latencies = PutLatencies() if has_added else None
        self._broker_puts = StatsItemSet("BROKER_PUT_NUMS")
        self._broker_gets = StatsItemSet("BROKER_GET_NUMS")
        self._ordinary_puts = StatsItemSet("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC")
        self._ordinary_gets = StatsItemSet("BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC")
        self._producer_registers = StatsItemSet("PRODUCER_REGISTER_TIME")
        self._consumer_registers = StatsItemSet("CONSUMER_REGISTER_TIME")
        self._channels = StatsItemSet("CHANNEL_ACTIVITY")
        # Messages that count for the schedule topic, but not for the broker.
        self._delayed_back = 0
        self.pulls = PullCounts(self._group_gets, self._get_latencies)
        # By name: the items, and whether the statistic is about their sizes.
        self._names: dict[str, tuple[StatsItemSet, bool]] = {
            "TOPIC_PUT_NUMS": (self.topic_puts, False),
            "TOPIC_PUT_SIZE": (self.topic_puts, True),
            "QUEUE_PUT_NUMS": (self._queue_puts, False),
            "QUEUE_PUT_SIZE": (self._queue_puts, True),
            "QUEUE_GET_NUMS": (self._queue_gets, False),
            "QUEUE_GET_SIZE": (self._queue_gets, True),
            "GROUP_GET_NUMS": (self._group_gets, False),
            "GROUP_GET_SIZE": (self._group_gets, True),
            "GROUP_GET_LATENCY": (self._get_latencies, False),
            "SNDBCK_PUT_NUMS": (self._send_backs, False),
            "BROKER_PUT_NUMS": (self._broker_puts, False),
            "BROKER_GET_NUMS": (self._broker_gets, False),
        }
        if has_added:
            self._names |= {
                "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC": (self._ordinary_puts, False),
                "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC": (self._ordinary_gets, False),
                "PRODUCER_REGISTER_TIME": (self._producer_registers, False),
                "CONSUMER_REGISTER_TIME": (self._consumer_registers, False),
                "CHANNEL_ACTIVITY": (self._channels, False),
                "SNDBCK2DLQ_TIMES": (self._dead_letters, False),
                "GROUP_CK_NUMS": (self._group_check_points, False),
                "GROUP_ACK_NUMS": (self._group_acks, False),
                "BROKER_CK_NUMS": (self._broker_check_points, False),
                "BROKER_ACK_NUMS": (self._broker_acks, False),
            }
        if self.put_latencies is not None:
            self._names["TOPIC_PUT_LATENCY"] = (self.put_latencies.by_key, False)
        # Those with one item, or a few.
        self._small_sets = (
            self._broker_puts,
            self._broker_gets,
            self._ordinary_puts,
            self._ordinary_gets,
            self._producer_registers,
            self._consumer_registers,
            self._channels,
            self._broker_check_points,
            self._broker_acks,
        )
        # Those whose items may be idle (5.3.3 NEED_CLEAN_STATS_SET), and others with many keys.
        self._sets = (
            self.topic_puts,
            self._queue_puts,
            self._queue_gets,
            self._group_gets,
            self._get_latencies,
            self._send_backs,
            self._dead_letters,
            self._group_check_points,
            self._group_acks,
            *((self.put_latencies.by_key,) if self.put_latencies is not None else ()),
        )

    # Counting.

    def count_puts(self, puts: QueuePuts) -> None:
        """Count sends to a queue."""
        item = self.topic_puts[puts.topic]
        item.times += puts.requests
        item.extra += puts.extra
        item.size += puts.size
        if self.put_latencies is not None:
            self.put_latencies[puts.topic, puts.queue_id].times += puts.requests

    def count_delayed(self, queue_id: int, size: int) -> None:
        """Count a message that a send or CONSUMER_SEND_MSG_BACK (36) stored in the schedule topic."""
        self._queue_puts[f"{SCHEDULE_TOPIC}@{queue_id}"].add(1, size)

    def count_delivered(self, queue_id: int, size: int) -> None:
        """Count a delayed message that was stored in its real topic."""
        self._queue_gets[f"{SCHEDULE_TOPIC}@{queue_id}@{_SCHEDULE_GROUP}"].add(1, size)
        self._group_gets[f"{SCHEDULE_TOPIC}@{_SCHEDULE_GROUP}"].add(1, size)

    def count_send_back(self, topic: str, group: str) -> None:
        """Count a message of ``topic`` that a group sent back."""
        self._send_backs[f"{topic}@{group}"].add(1)

    def count_dead_letter(self, owner: object, topic: str | None, group: str) -> None:
        """Count a message of ``topic`` that a group sent back to its dead letters.

        Args:
            owner: the request's ext field ``Owner``, which only clients of a commercial release send.
            topic: the request's ``originTopic``.
        """
        names = ("null" if name is None else name for name in (owner, topic))
        self._dead_letters["@".join((*map(str, names), group, _SEND_BACK_TO_DLQ))].add(1)

    def count_check_point(self, topic: str, group: str) -> None:
        """Count a checkpoint of a POP, or of a changed invisible time."""
        self._group_check_points[f"{topic}@{group}"].add(1)
        self._broker_check_points[self._cluster].extra += 1

    def count_acks(self, topic: str, group: str, count: int) -> None:
        """Count messages that a group has acknowledged in one request."""
        self._group_acks[f"{topic}@{group}"].add(count)
        self._broker_acks[self._cluster].extra += count

    def count_delayed_back(self, queue_id: int, size: int) -> None:
        """Count a sent-back message that was stored in the schedule topic; the broker's puts exclude it."""
        self.topic_puts[SCHEDULE_TOPIC].add(1, size)
        self.count_delayed(queue_id, size)
        self._delayed_back += 1

    def count_producer_register(self, ms: int) -> None:
        """Count a producer group of a heartbeat, and how long its registration took."""
        self._producer_registers[self._cluster].add(ms)

    def count_consumer_register(self, ms: int) -> None:
        """Count a consumer group of a heartbeat, and how long its registration took."""
        self._consumer_registers[self._cluster].add(ms)

    def count_channel(self, event: str) -> None:
        """Count ``CONNECT``, ``CLOSE``, ``EXCEPTION`` or ``IDLE`` of a client's connection."""
        self._channels[event].add(1)

    # Sampling.

    def sample(self, now: float, puts: int, gets: int) -> Generator[None]:
        """Sample all items, a few hundred in each slice; called every ``SAMPLE_SECONDS``.

        Args:
            now: monotonic seconds.
            puts: messages that clients stored at this broker since the start, and delivered delayed ones.
            gets: messages that pulls returned since the start.
        """
        self.pulls.settle()
        self._set_broker(puts, gets)
        self._samples += 1
        tens = self._samples % _SAMPLES_PER_TEN_MINUTES == 0
        hours = self._samples % _SAMPLES_PER_HOUR == 0
        for items in (*self._small_sets, *self._sets):
            for number, item in enumerate(list(items.values())):
                if number % _ITEMS_PER_SLICE == 0 < number:
                    yield
                item.sample(item.minute, now)
                if tens:
                    item.sample(item.hour, now)
                    item.watch_idle(_TEN_MINUTES)
                if hours:
                    item.sample(item.day, now)
        if tens:
            for items in self._sets:
                if len(items) > _ITEMS_PER_SLICE:
                    yield
                items.remove_idle(self._idle_limit)
                # In the same slice: a send must not count in an item that is removed.
                if self.put_latencies is not None:
                    self.put_latencies.clear()
            self.pulls.forget()

    def _set_broker(self, puts: int, gets: int) -> None:
        """Set the counts of the whole broker. As in RocketMQ, they count no requests: avgpt stays 0.0."""
        ordinary_puts, ordinary_gets = self.ordinary(puts, gets)
        for items, count in (
            (self._broker_puts, puts),
            (self._broker_gets, gets),
            (self._ordinary_puts, ordinary_puts),
            (self._ordinary_gets, ordinary_gets),
        ):
            if count:
                items[self._cluster].extra = count

    # Reading and removing.

    def find(self, name: str, key: str, puts: int, gets: int) -> StatsData | None:
        """Return one statistic, or None if there is none of that name and key.

        Args:
            puts, gets: see ``sample``.
        """
        self.pulls.settle()
        items, of_size = self._names.get(name, (None, False))
        if items is None:
            return None
        self._set_broker(puts, gets)
        item = items.get(key)
        if item is None:
            return None
        return StatsData(
            item.minute.snapshot(of_size=of_size),
            item.hour.snapshot(of_size=of_size),
            item.day.snapshot(of_size=of_size),
        )

    def ordinary(self, puts: int, gets: int) -> tuple[int, int]:
        """Return ``puts`` and ``gets``, see ``sample``, without those of system topics."""
        system_puts = self.topic_puts.watched_value - self._delayed_back
        return puts - system_puts, gets - self._group_gets.watched_value

    def group_get_tps(self, topic: str, group: str) -> float:
        """Return the messages that a group pulled per second over the last minute."""
        self.pulls.settle()
        item = self._group_gets.get(f"{topic}@{group}")
        return item.minute.snapshot(of_size=False).tps if item is not None else 0.0

    def on_topic_deleted(self, topic: str) -> None:
        """Remove a topic's items, if so configured (``BrokerStatsManager#onTopicDeleted``)."""
        if not self._deletes:
            return
        self.pulls.settle()
        self.topic_puts.remove_key(topic)
        for items in (self._queue_puts, self._queue_gets, self._group_gets, self._send_backs):
            items.remove(topic, lambda fields: fields[0] == topic)
        self._get_latencies.remove(topic, lambda fields: fields[1] == topic)
        if self.put_latencies is not None:
            self.put_latencies.remove_topic(topic)

    def on_group_deleted(self, group: str) -> None:
        """Remove a group's items, if so configured (``BrokerStatsManager#onGroupDeleted``)."""
        if not self._deletes:
            return
        self.pulls.settle()
        for items in (self._queue_gets, self._group_gets, self._send_backs, self._get_latencies):
            items.remove(group, lambda fields: fields[-1] == group)


def _is_of_system_topic(key: str, system_topics: frozenset[str]) -> bool:
    """Whether ``topic@group`` is about pulls from a system topic; delayed messages are not pulled."""
    topic, _, group = key.partition("@")
    return is_system_topic(topic, system_topics) and (topic, group) != (SCHEDULE_TOPIC, _SCHEDULE_GROUP)


def _idle_limit(minutes: int) -> float | None:
    """Return the limit in seconds, None if idle items stay (``BrokerStatsManager#cleanAllResource``)."""
    if minutes < 0:
        return None
    return 60.0 * (_IDLE_MINUTES if minutes <= _SHORTEST_IDLE_MINUTES else minutes)
