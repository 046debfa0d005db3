"""Classic resets of groups under traffic, proven by the minute that begins in the wait.

docs/watched_reset.md describes the rule. The model has a broker that counts every 10 s, and consumers that
fetch what arrives at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import Fetched, QueueSample, Sample
from rewindmq.watch.rules.fetched import FetchCount
from rewindmq.watch.rules.minute import ClassicMinute, CountSpan
from rewindmq.watch.verdict.reset_watch import ResetWatch

BROKER = "broker-a"
OLD = 1_000
WAIT = 10.0


@dataclass
class Traffic:
    """A reset at second 0.

    Attributes:
        target: offset of each queue.
        per_second: messages that arrive in each queue.
        since: second of the first of them.
        first_count: second at which the broker counts, and every 10 s before and after it.
        notified, retaken: when the consumer gives the queues up, and takes them again.
        lost: queues that go on at the old offset.
        faster: messages a second that a consumer fetches until it is at the end.
        is_asked_closely: the watch asks for the count many times a second when it expects it.
        slow: seconds from the count to the question for the ends then.
        every: seconds from one sample to the next.
        late: seconds by which single counts are late: number of the count after the reset to them.
        has_kept_pulls: the broker answers a pull of each queue after the consumer gave it up.
        set_back: second at which the broker's clock is set back, and by how many seconds.
    """

    queues: int = 4
    per_second: float = 25.0
    since: float = -200.0
    first_count: float = 4.0
    notified: float = 0.2
    retaken: float = 0.2 + WAIT
    lost: frozenset[int] = frozenset()
    faster: float = 5_000.0
    target: int = 0
    is_asked_closely: bool = False
    slow: float = 0.1
    every: float = 0.45
    late: Mapping[int, float] = field(default_factory=dict)
    has_kept_pulls: bool = False
    set_back: tuple[float, float] = (1_000.0, 0.0)
    last: Fetched | None = field(default=None, init=False)

    def end(self, at: float) -> int:
        return OLD + int(self.per_second * max(0.0, at - self.since))

    def ends(self, at: float) -> dict[int, int]:
        return dict.fromkeys(range(self.queues), self.end(at))

    def position(self, number: int, at: float) -> int:
        """The next offset that the consumer fetches."""
        if at < self.retaken:
            return self.end(min(at, self.notified))
        first = self.end(0) if number in self.lost else self.target
        return min(self.end(at), first + int(self.faster * (at - self.retaken)))

    def fetched(self, at: float) -> int:
        """Messages fetched until then, since long ago."""
        again = 0
        for number in range(self.queues):
            position = self.position(number, at)
            if at >= self.retaken:
                first = self.end(0) if number in self.lost else self.target
                position += self.end(self.notified) - first
            again += position
            if self.has_kept_pulls and at > self.notified and self.end(at) > self.end(self.notified):
                again += 32
        return again

    def count(self, number: int) -> float:
        """When the broker counts."""
        return self.first_count + 10 * number + self.late.get(number, 0.0)

    def clock(self, at: float) -> float:
        """What the broker's clock shows."""
        when, seconds = self.set_back
        return at - seconds if at >= when else at

    def told(self, at: float) -> tuple[int, float]:
        """The messages of the broker's last minute, and its length."""
        number = max(each for each in range(-3, 20) if self.count(each) <= at)
        last, first = self.count(number), self.count(number - 6)
        return self.fetched(last) - self.fetched(first), self.clock(last) - self.clock(first)

    def ask(self, at: float) -> Fetched:
        """Ask the broker for its count, as ``Counts`` does."""
        before, told = self.last, self.told(at)
        self.last = Fetched(at, told[0], seconds=told[1])
        if before is not None:
            is_same = (before.messages, before.seconds) == told
            after = before.after if is_same else before.asked
            self.last = self.last._replace(ends=before.ends if is_same else None, after=after)
        return self.last

    def sample(self, at: float, *, is_counted: bool = True) -> Sample:
        if is_counted:
            self.ask(at)
        queues = {}
        for number in range(self.queues):
            position = self.position(number, at)
            holder = Position(
                "A", position, None, dropped=self.notified <= at < self.retaken, last_consume=int(at * 1_000)
            )
            stored = self.end(0) if at < self.retaken else position
            queues[MessageQueue("T", BROKER, number)] = QueueSample(stored, self.end(at), (holder,))
        told = {} if self.last is None or at - self.last.asked > 6 else {BROKER: self.last}
        return Sample(at + 0.05, queues, frozenset("A"), fetched=told)

    def ask_closely(self, at: float, span: CountSpan) -> float:
        """Ask for the count until it changes, as ``Counts`` does; return when the watch goes on."""
        at = max(at, span.earliest)
        while at < span.latest:
            before = self.last
            told = self.ask(at)
            if before is not None and told.after == before.asked:
                at += self.slow
                self.last = told._replace(ends=self.ends(at))
                if told.asked - before.asked < 5:
                    break
            at += 0.03
        return at

    def watched(self, count: FetchCount) -> Iterator[tuple[Sample, Mapping[str, int]]]:
        """Give each sample to the rule; yield it, and what the rule says."""
        at = 0.1
        while at < 100.0:
            sample = self.sample(at, is_counted=BROKER in count.needs(at, at))
            yield sample, count.add(sample.at, sample)
            span = count.expected_within.get(BROKER)
            at = sample.at + self.every
            if self.is_asked_closely and span is not None and span.earliest <= at <= span.latest + self.every:
                at = max(at, self.ask_closely(sample.at, span))


def again(messages: int, traffic: Traffic) -> Traffic:
    """Return the traffic with a reset by so many messages in each queue."""
    return replace(traffic, target=traffic.end(0) - messages)


def proven(traffic: Traffic, *, disturbed: Sample | None = None) -> set[int]:
    """Return the queues that the counts prove."""
    before = traffic.sample(-0.05)
    targets = dict.fromkeys(before.queues, traffic.target)
    count = FetchCount(before, targets)
    found: set[int] = set()
    for sample, told in traffic.watched(count):
        left_out = told
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


def test_ends_that_are_asked_for_right_after_the_count_leave_less_in_doubt() -> None:
    """Eight queues have 375 messages to redeliver each, and get 2,000 a second together."""
    traffic = Traffic(8, 250.0, since=-1.5, target=OLD, faster=50_000.0)
    assert not proven(traffic)
    asked = replace(traffic, is_asked_closely=True)
    assert proven(asked) == set(range(8))
    assert not proven(replace(asked, lost=frozenset({3})))
    assert not proven(replace(asked, slow=0.25))


def watched(traffic: Traffic, until: float) -> ResetWatch:
    before = traffic.sample(-0.05)
    watch = ResetWatch(before, dict.fromkeys(before.queues, 0), 0.0)
    for number in range(200):
        sample = traffic.sample(0.1 + number / 2)
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


@pytest.mark.parametrize("every", [0.45, 2.0, 3.0])
def test_no_sample_needs_to_see_the_count_in_the_wait(every: float) -> None:
    """On a busy machine, samples are seconds apart."""
    for first_count in (5.0, 6.0, 7.5, 8.5):
        traffic = again(400, Traffic(8, 25.0, first_count=first_count, every=every, is_asked_closely=True))
        assert proven(traffic) == set(range(8)), first_count
        assert not proven(replace(traffic, lost=frozenset({3})))


def test_a_minute_that_began_before_the_wait_proves_nothing() -> None:
    """The group still fetches new messages, which hide the ones that a lost queue lacks."""
    busy = again(50, Traffic(2, 600.0, first_count=1.9, notified=2.0, retaken=12.0, slow=0.01))
    for closely in (False, True):
        assert not proven(replace(busy, lost=frozenset({0}), is_asked_closely=closely))


@pytest.mark.parametrize(
    ("after", "seconds", "is_placed"),
    [(63.0, 60.0, True), (63.0, 57.5, True), (61.0, 60.0, False), (61.0, 57.5, False), (63.0, 62.5, False)],
    ids=["in the wait", "short", "before the wait", "clock set back", "counted late"],
)
def test_a_minute_seems_to_begin_no_later_than_it_did(after: float, seconds: float, is_placed: bool) -> None:
    """The wait is seen from second 2 on. A minute that is told too short may have begun 60 s ago."""
    given_up = Position("A", 10, None, dropped=True, last_consume=1)
    queue = MessageQueue("T", BROKER, 0)
    minute = ClassicMinute(BROKER, {queue: 0})
    for at, position in ((2.0, given_up), (2.5, given_up), (20.0, replace(given_up, dropped=False))):
        minute.add(Sample(at, {queue: QueueSample(10, 10, (position,))}))
    told = Fetched(after + 0.1, 8, {0: 12}, seconds, after)
    seen = QueueSample(12, 12, (replace(given_up, dropped=False),))
    left_out = minute.add(Sample(after + 0.2, {queue: seen}, fetched={BROKER: told}))
    assert left_out == (12 - 8 + 32 if is_placed else None)


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
        chance.choice([-200.0, -1.0, 4.0, 13.0]),
        chance.uniform(0.0, 10.0),
        notified,
        notified + WAIT + chance.uniform(0.0, 0.5),
        frozenset(chance.sample(range(queues), chance.randint(1, queues))),
        chance.choice([100.0, 1_000.0, 100_000.0]),
        is_asked_closely=chance.random() < 0.7,
        slow=chance.choice([0.01, 0.1, 0.5]),
        every=chance.choice([0.45, 0.45, 1.0, 3.0]),
        late=chance.choice([{}, {number: chance.uniform(0.0, 3.0) for number in range(20)}]),
        has_kept_pulls=chance.random() < 0.5,
    )
    if chance.random() < 0.7:
        traffic = again(chance.choice([400, 40]), traffic)
    if not traffic.late:
        traffic.set_back = (chance.uniform(-10.0, 75.0), chance.choice([0.0, 2.0, -2.0]))
    assert not proven(traffic)
    rate = min(50.0, traffic.per_second)
    kept = replace(
        traffic, lost=frozenset(), faster=100_000.0, since=-200.0, per_second=rate, target=0, every=0.45
    )
    # Two minutes of exactly the same length and sum cannot be told apart.
    kept = replace(
        kept,
        late={number: chance.uniform(0.0, 0.01) for number in range(20)},
        set_back=(1_000.0, 0.0),
    )
    in_wait = kept.first_count % 10
    if notified + 2 < in_wait < 9 and kept.per_second * 4 * queues + 64 * queues < OLD:
        assert len(proven(kept)) == queues


def test_the_model_counts_what_its_consumers_fetch() -> None:
    traffic = Traffic(lost=frozenset({1}))
    totals = [traffic.fetched(at / 10) for at in range(-100, 900)]
    assert all(before <= after for before, after in pairwise(totals))
