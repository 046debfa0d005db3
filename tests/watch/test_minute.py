"""Classic resets of groups under traffic, proven by the minute that begins in the wait.

docs/watched_reset.md describes the rule. The model has a broker that counts every 10 s, and consumers that
fetch what arrives at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import Fetched, QueueSample, Sample
from rewindmq.watch.rules.fetched import FetchCount
from rewindmq.watch.verdict.reset_watch import ResetWatch

BROKER = "broker-a"
OLD = 1_000
WAIT = 10.0


@dataclass
class Traffic:
    """A reset at second 0 to the start of each queue.

    Attributes:
        per_second: messages that arrive in each queue.
        since: second of the first of them.
        first_count: second at which the broker counts, and every 10 s before and after it.
        notified, retaken: when the consumer gives the queues up, and takes them again.
        lost: queues that go on at the old offset.
        faster: messages a second that a consumer fetches until it is at the end.
    """

    queues: int = 4
    per_second: float = 25.0
    since: float = -200.0
    first_count: float = 4.0
    notified: float = 0.2
    retaken: float = 0.2 + WAIT
    lost: frozenset[int] = frozenset()
    faster: float = 5_000.0
    asked: float = field(default=-9.0, init=False)

    def end(self, at: float) -> int:
        return OLD + int(self.per_second * max(0.0, at - self.since))

    def position(self, number: int, at: float) -> int:
        """The next offset that the consumer fetches."""
        if at < self.retaken:
            return self.end(min(at, self.notified))
        first = self.end(0) if number in self.lost else 0
        return min(self.end(at), first + int(self.faster * (at - self.retaken)))

    def fetched(self, at: float) -> int:
        """Messages fetched until then, since long ago."""
        again = 0
        for number in range(self.queues):
            position = self.position(number, at)
            if at >= self.retaken:
                position += self.end(self.notified) - (self.end(0) if number in self.lost else 0)
            again += position
        return again

    def told(self, at: float) -> int:
        """The messages of the broker's last minute."""
        counted = self.first_count + (at - self.first_count) // 10 * 10
        return self.fetched(counted) - self.fetched(counted - 60)

    def sample(self, at: float) -> Sample:
        if at - self.asked >= 0.4:
            self.asked = at
        queues = {}
        for number in range(self.queues):
            position = self.position(number, at)
            holder = Position(
                "A", position, None, dropped=self.notified <= at < self.retaken, last_consume=int(at * 1_000)
            )
            stored = self.end(0) if at < self.retaken else position
            queues[MessageQueue("T", BROKER, number)] = QueueSample(stored, self.end(at), (holder,))
        return Sample(
            at + 0.05,
            queues,
            frozenset("A"),
            fetched={BROKER: Fetched(self.asked, self.told(self.asked))},
        )

    def samples(self, step: float = 0.5) -> Iterator[Sample]:
        for number in range(200):
            yield self.sample(0.1 + number * step)


def proven(traffic: Traffic, *, disturbed: Sample | None = None) -> set[int]:
    """Return the queues that the counts prove."""
    before = traffic.sample(-0.05)
    targets = dict.fromkeys(before.queues, 0)
    count = FetchCount(before, targets)
    found: set[int] = set()
    for sample in traffic.samples():
        left_out = count.add(sample.at, sample)
        if disturbed is not None and sample.at > 20:
            left_out = count.add(sample.at, replace(disturbed, at=sample.at))
        found |= {queue.queue_id for queue in targets if count.of(queue, left_out).is_fetched}
    return found


def test_a_kept_reset_under_traffic_is_proven() -> None:
    assert proven(Traffic()) == {0, 1, 2, 3}


def test_a_lost_queue_lacks_its_redelivery_in_the_count() -> None:
    for lost in ({0}, {1, 2}, {0, 1, 2, 3}):
        assert not proven(Traffic(lost=frozenset(lost)))


def test_what_arrives_in_the_seconds_of_a_count_must_be_less_than_the_redelivery() -> None:
    assert proven(Traffic(per_second=80.0))
    fast = Traffic(per_second=4_000.0, faster=500_000.0)
    assert proven(fast)
    assert not proven(replace(fast, since=-0.5))


def watched(traffic: Traffic, until: float) -> ResetWatch:
    before = traffic.sample(-0.05)
    watch = ResetWatch(before, dict.fromkeys(before.queues, 0), 0.0)
    for sample in traffic.samples():
        if sample.at < until:
            watch.add(sample)
    return watch


def test_a_watch_says_that_it_waits_for_the_minute() -> None:
    queue, *_ = watched(Traffic(), 40.0).queues
    assert "count of the minute that began in the classic wait, within 35 s" in queue.waits_for


def test_a_count_that_leaves_too_much_open_is_given_as_the_reason() -> None:
    watch = watched(Traffic(per_second=4_000.0, since=-0.5, faster=500_000.0), 100.0)
    watch.end(120.0)
    queue, *_ = watch.queues
    assert (
        "it was not counted, because broker-a's count of the minute after the reset may lack" in queue.reason
    )


def test_a_count_that_misses_the_wait_proves_nothing() -> None:
    """The group fetches again before the broker counts."""
    assert not proven(Traffic(first_count=9.9, notified=1.0, retaken=9.0))


def test_a_redelivery_that_is_not_through_in_the_minute_is_not_proven() -> None:
    assert not proven(Traffic(faster=40.0))


@pytest.mark.parametrize("what", ["joined", "given up again", "broker away"])
def test_whatever_fetches_twice_or_leaves_out_ends_the_count(what: str) -> None:
    traffic = Traffic()
    sample = traffic.sample(30.0)
    queue, seen = next(iter(sample.queues.items()))
    holder = seen.positions[0]
    disturbed = {
        "joined": replace(sample, clients=frozenset("AB")),
        "given up again": replace(
            sample, queues={**sample.queues, queue: replace(seen, positions=(replace(holder, dropped=True),))}
        ),
        "broker away": replace(sample, queues={**sample.queues, queue: QueueSample(None)}),
    }[what]
    assert not proven(traffic, disturbed=disturbed)


@pytest.mark.parametrize("seed", range(100))
def test_no_lost_queue_is_proven_at_any_rate_and_count(seed: int) -> None:
    chance = random.Random(seed)
    queues = chance.randint(1, 8)
    notified = chance.uniform(0.01, 2.0)
    traffic = Traffic(
        queues,
        chance.choice([0.5, 5.0, 50.0, 500.0]),
        chance.choice([-200.0, -1.0]),
        chance.uniform(0.0, 10.0),
        notified,
        notified + WAIT + chance.uniform(0.0, 0.5),
        frozenset(chance.sample(range(queues), chance.randint(1, queues))),
        chance.choice([100.0, 1_000.0, 100_000.0]),
    )
    assert not proven(traffic)
    rate = min(50.0, traffic.per_second)
    kept = replace(traffic, lost=frozenset(), faster=100_000.0, since=-200.0, per_second=rate)
    in_wait = kept.first_count % 10
    if notified + 2 < in_wait < 9 and kept.per_second * 4 * queues + 64 * queues < OLD:
        assert len(proven(kept)) == queues


def test_the_model_counts_what_its_consumers_fetch() -> None:
    traffic = Traffic(lost=frozenset({1}))
    totals = [traffic.fetched(at / 10) for at in range(-100, 900)]
    assert all(before <= after for before, after in pairwise(totals))
