"""Counters and rates of stored and pulled messages (4.9.4 ``StoreStatsService``, ``BrokerStats``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from datetime import datetime
from typing import Final, NamedTuple

from rewindmq.broker.stats.manager import SAMPLE_SECONDS, BrokerStatsManager, StatsData
from rewindmq.broker.stats.put_times import PutTimes
from rewindmq.broker.store.consume_queue.put_counts import PutCounts, QueuePuts
from rewindmq.protocol.code import RequestCode

_WINDOWS_SECONDS: Final = (10.0, 60.0, 600.0)
_SENDS: Final = frozenset(
    (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)
# Requests that store a message.
_PUTS: Final = _SENDS | {RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.END_TRANSACTION}


class _Sample(NamedTuple):
    at: float
    put_total: int
    get_total: int
    found_total: int
    missed_total: int


class BrokerStats:
    """Counters, sampled every 10 s.

    Sends and pulls only add to counts of their queues. Whatever reads a figure first adds these counts to the
    totals and items.

    Attributes:
        puts: the store's counts of what was sent to each queue.
        put_failed: puts that stored nothing.
        own_puts: stored messages that are in no topic's statistics, such as op records.
        get_time_max: the longest pull in milliseconds (``getMessageEntireTimeMax``).
        missed_total: reads by pulls that found no messages.
        boot_timestamp, boot_time: the start, ms since 1970 and monotonic protocol seconds.
        put_at_midnight, get_at_midnight: ``today`` at the beginnings of yesterday and today, local time.
        items: the statistics of topics and groups.
        put_times: how long puts take.
    """

    def __init__(self, now_ms: int, now: float, items: BrokerStatsManager) -> None:
        self.boot_timestamp = now_ms
        self.boot_time = now
        self.items = items
        self.put_times = PutTimes()
        self.puts = PutCounts(self._count_puts)
        self._put_total = 0
        self._put_bytes = 0
        self._batch_extra = 0
        self.put_failed = 0
        self.own_puts = 0
        self.get_time_max = 0
        self.missed_total = 0
        self.put_at_midnight = (0, 0)
        self.get_at_midnight = (0, 0)
        self._day = datetime.fromtimestamp(now_ms / 1_000).astimezone().date()
        samples = int(_WINDOWS_SECONDS[-1] / SAMPLE_SECONDS) + 1
        self._samples = deque([_Sample(now, 0, 0, 0, 0)], maxlen=samples)

    @property
    def put_total(self) -> int:
        """Messages stored since the start."""
        self._settle_puts()
        return self._put_total

    @property
    def put_bytes(self) -> int:
        """Size of their records in bytes."""
        self._settle_puts()
        return self._put_bytes

    @property
    def batch_extra(self) -> int:
        """Stored messages of batches beyond one for each batch."""
        self._settle_puts()
        return self._batch_extra

    @property
    def get_total(self) -> int:
        """Messages returned by pulls since the start."""
        self.items.pulls.settle()
        return self.items.pulls.messages

    @property
    def found_total(self) -> int:
        """Reads by pulls that found messages."""
        self.items.pulls.settle()
        return self.items.pulls.requests

    def _settle_puts(self) -> None:
        for puts in self.puts.take():
            self._count_puts(puts)

    def _count_puts(self, puts: QueuePuts) -> None:
        self._put_total += puts.requests + puts.extra
        self._put_bytes += puts.size
        self._batch_extra += puts.extra
        self.items.count_puts(puts)

    def count_other_put(self, topic: str, size: int, *, is_counted: bool) -> None:
        """Count the last put, of one message, that is not, or not only, a send to its queue.

        Args:
            size: bytes of its record.
            is_counted: whether it is in its topic's statistics.
        """
        self.puts.take_back(size)
        self._put_total += 1
        self._put_bytes += size
        if is_counted:
            self.items.topic_puts[topic].add(1, size)
        else:
            self.own_puts += 1

    def forget_last_put(self) -> None:
        """Note that a send was refused, so that its time does not count for a queue."""
        self.puts.last = None
        if self.items.put_latencies is not None:
            self.items.put_latencies.last = None

    def on_slow_request(self, code: int, ms: float) -> None:
        """Record a put or pull that took more than a millisecond; called directly after the request.

        Nearly all take less. Two readings of the clock for each of them would cost more than all counters.

        Args:
            ms: how long the event loop worked on it, without waiting for the disk and for slaves.
        """
        if code in _PUTS:
            self.put_times.add_slow(int(ms))
            if code in _SENDS:
                self._add_latency(int(ms))
        elif code == RequestCode.PULL_MESSAGE:
            self.get_time_max = max(self.get_time_max, int(ms))
            self.items.pulls.add_latency(int(ms))

    def _add_latency(self, ms: int) -> None:
        """Add milliseconds to the queue of the last send, if it was stored."""
        latencies, queue = self.items.put_latencies, self.puts.last
        if latencies is None:
            return
        item = latencies.last if queue is None else latencies[queue.topic, queue.queue_id]
        if item is not None:
            item.extra += ms

    def sample(self, now_ms: int, now: float) -> Generator[None]:
        """Record the counters, then those of topics and groups in slices; called every ``SAMPLE_SECONDS``."""
        self._samples.append(self._now(now))
        self.put_times.sample(self.put_total - self.batch_extra)
        day = datetime.fromtimestamp(now_ms / 1_000).astimezone().date()
        if day != self._day:
            self._day = day
            puts, gets = self.today()
            self.put_at_midnight = (self.put_at_midnight[1], puts)
            self.get_at_midnight = (self.get_at_midnight[1], gets)
        yield from self.items.sample(now, self.put_total - self.own_puts, self.get_total)

    def today(self) -> tuple[int, int]:
        """Return the messages stored and pulled since the start (``msgPutTotalTodayNow``).

        Under v53 those of system topics are not included (5.3.3 ``BrokerStats``).
        """
        if self.items.has_added:
            return self.items.ordinary(self.put_total - self.own_puts, self.get_total)
        return self.put_total, self.get_total

    def find(self, name: str, key: str) -> StatsData | None:
        """Return one statistic, or None if there is none of that name and key."""
        self._settle_puts()
        return self.items.find(name, key, self.put_total - self.own_puts, self.get_total)

    def on_topic_deleted(self, topic: str) -> None:
        """Remove a topic's items, if so configured; see ``BrokerStatsManager``."""
        self._settle_puts()
        self.items.on_topic_deleted(topic)

    def put_tps(self) -> str:
        """Return the messages stored per second over the last 10, 60 and 600 s, for the tools."""
        return self._rates(lambda sample: sample.put_total)

    def get_tps(self) -> str:
        """Return the messages pulled per second over the same windows."""
        return self._rates(lambda sample: sample.get_total)

    def found_tps(self) -> str:
        """Return the reads per second that found messages, over the same windows."""
        return self._rates(lambda sample: sample.found_total)

    def missed_tps(self) -> str:
        """Return the reads per second that found none, over the same windows."""
        return self._rates(lambda sample: sample.missed_total)

    def looked_tps(self) -> str:
        """Return all reads per second, over the same windows."""
        return self._rates(lambda sample: sample.found_total + sample.missed_total)

    def _now(self, now: float) -> _Sample:
        return _Sample(now, self.put_total, self.get_total, self.found_total, self.missed_total)

    def _rates(self, counter: Callable[[_Sample], int]) -> str:
        return " ".join(str(self._rate(window, counter)) for window in _WINDOWS_SECONDS)

    def _rate(self, window: float, counter: Callable[[_Sample], int]) -> float:
        newest = self._samples[-1]
        oldest = next(sample for sample in self._samples if newest.at - sample.at <= window)
        seconds = newest.at - oldest.at
        return (counter(newest) - counter(oldest)) / seconds if seconds else 0.0
