"""A model of one queue with consumers and a broker, whose random histories a ``QueueWatch`` follows."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import QueueSample, Sample
from tests.watch.one_queue import QUEUE, OneQueue

STORED = 100
_STEP = 0.1
_END_SECONDS = 150.0


@dataclass
class _Consumer:
    name: str
    speed: float
    position: float = float(STORED)
    has_queue: bool = False
    is_dropped: bool = False
    takes_at: float | None = None
    stores_target: bool = False
    committed_at: float = 0.0
    last_consume: int = 1_000
    consumed_at: list[float] = field(default_factory=list)


class RandomWatch:
    """A classic reset that may be lost, at a broker that may be restarted, with late commits and rebalances.

    Attributes:
        is_lost: messages from the target on were never consumed after a rewind; or the consumers of a skip
            consumed every message that it leaves out.
    """

    def __init__(self, seed: int) -> None:
        chance = self._chance = random.Random(seed)
        self._is_skip = chance.random() < 0.35
        self._target = chance.choice([102, 105, 110, 150, 400] if self._is_skip else [0, 50, 95, 99])
        self._end = self._target + chance.choice([0, 5, 200]) if self._is_skip else chance.choice([100, 130])
        speeds = [0.3, 1.0, 2.0, 5.0, 20.0, 100.0, 1_000.0]
        self._consumers = [_Consumer(name, chance.choice(speeds)) for name in "ABC"[: chance.randint(1, 3)]]
        self._stored = STORED
        self._consumed: set[int] = set()
        self._unlisted = dict.fromkeys("ABC", -1.0)
        self._away_until = self._mute_until = self._no_list_until = -1.0
        self._mute = ""
        self._next_sample = 0.5
        first = self._consumers[0]
        first.has_queue = True
        before = QueueSample(STORED, self._end, (self._position(first),))
        clients = frozenset(consumer.name for consumer in self._consumers)
        self.watch = OneQueue(self._target, before, clients)
        self._late_commits = self._reset(first)
        last = chance.choice([12.0, 40.0, 90.0])
        kinds = [self._late_commit, self._move, self._kill, self._restart]
        kinds += [self._silence, self._slow, self._refuse_list, self._take_again]
        self._events = sorted(
            (chance.uniform(0, last), number, chance.choice(kinds)) for number in range(chance.randint(0, 3))
        )

    def _reset(self, holder: _Consumer) -> list[float]:
        """Begin the classic wait, unless the notification is lost; return times of late commits."""
        if self._chance.random() < 0.25:
            return []
        holder.is_dropped = holder.stores_target = True
        holder.takes_at = self._chance.uniform(10.05, 12.0)
        return [self._chance.uniform(9.0, 14.0)] if self._chance.random() < 0.33 else []

    def play(self) -> None:
        """Let the time pass, and give each sample to the watch.

        After the verdict, nothing more happens to the consumers: a later loss is none of the reset.
        """
        now = 0.0
        while now < _END_SECONDS:
            now = round(now + _STEP, 1)
            if self.watch.is_over:
                self._events.clear()
            while self._events and self._events[0][0] <= now:
                self._events.pop(0)[2](now)
            while self._late_commits and self._late_commits[0] <= now:
                self._late_commits.clear()
                self._late_commit(now)
            for consumer in self._consumers:
                self._work(consumer, now)
            if now >= self._next_sample:
                self._next_sample += 0.5
                self.watch.add(now, self._sample(now))
        self.watch.end(now)

    @property
    def is_lost(self) -> bool:
        if self._is_skip:
            return self._consumed >= set(range(STORED, self._target))
        live = [int(each.position) for each in self._consumers if each.has_queue and not each.is_dropped]
        return not self._consumed >= set(
            range(self._target, min([STORED, *live] if live else [STORED, self._stored]))
        )

    def _late_commit(self, _now: float) -> None:
        self._stored = self._chance.choice([STORED, self._chance.randint(0, self._end)])

    def _move(self, now: float) -> None:
        """A rebalance gives the queue to another consumer."""
        holders = [each for each in self._consumers if each.has_queue or each.takes_at is not None]
        others = [each for each in self._consumers if not each.has_queue]
        if not holders or not others:
            return
        holder, heir = holders[0], self._chance.choice(others)
        if holder.has_queue and not holder.is_dropped and self._chance.random() < 0.7:
            self._stored = int(holder.position)
        holder.has_queue = holder.is_dropped = holder.stores_target = False
        holder.takes_at = None
        heir.takes_at = now + self._chance.choice([0.1, 0.3, 2.0, 10.0])

    def _take_again(self, now: float) -> None:
        """The holder gives the queue up and takes it again; a late commit may have come between.

        What the holder could have consumed in 10 s is not left out alone: between two samples, that looks
        like its own work.
        """
        for holder in self._consumers:
            if holder.has_queue and not holder.is_dropped:
                self._stored = int(holder.position)
                if self._chance.random() < 0.6:
                    ahead = 10 * holder.speed + self._chance.choice([2, 5, 30])
                    self._stored = min(self._end, int(holder.position + ahead))
                holder.has_queue, holder.takes_at = False, now + self._chance.choice([0.6, 1.0, 2.8])

    def _kill(self, now: float) -> None:
        if len(self._consumers) < 2:
            return
        killed = self._consumers.pop(self._chance.randrange(len(self._consumers)))
        if killed.has_queue or killed.takes_at is not None:
            self._consumers[0].takes_at = now + self._chance.choice([0.2, 1.0, 20.0])

    def _restart(self, now: float) -> None:
        """Restart the broker: it may have lost the last commits, and learns of consumers within 30 s."""
        self._away_until = now + self._chance.choice([0.6, 1.0, 3.0])
        self._unlisted = {name: self._away_until + self._chance.uniform(0, 30) for name in "ABC"}
        if self._chance.random() < 0.5:
            self._stored = STORED

    def _silence(self, now: float) -> None:
        self._mute = self._chance.choice(self._consumers).name
        self._mute_until = now + self._chance.choice([1.0, 2.5, 10.0, 40.0])

    def _refuse_list(self, now: float) -> None:
        """The broker does not tell the consumers for a while."""
        self._no_list_until = now + self._chance.choice([0.6, 1.5, 2.5, 6.0])

    def _slow(self, now: float) -> None:
        self._next_sample = now + self._chance.choice([2.0, 5.0, 9.0])

    def _work(self, consumer: _Consumer, now: float) -> None:
        if consumer.takes_at is not None and consumer.takes_at <= now:
            if consumer.stores_target:
                self._stored = self._target
            consumer.takes_at, consumer.has_queue = None, True
            consumer.is_dropped = consumer.stores_target = False
            consumer.position = float(min(self._stored, self._end))
            consumer.committed_at, consumer.last_consume = now, round(now * 1_000) + 1_000
        if not consumer.has_queue or consumer.is_dropped:
            return
        first = int(consumer.position)
        consumer.position = min(float(self._end), consumer.position + consumer.speed * _STEP)
        for offset in range(first, int(consumer.position)):
            self._consumed.add(offset)
            consumer.consumed_at.append(now)
            consumer.last_consume = round(now * 1_000) + 1_000
        if now - consumer.committed_at >= 5.0 and now > self._away_until:
            consumer.committed_at = now
            self._stored = int(consumer.position)

    def _position(self, consumer: _Consumer) -> Position:
        low = int(consumer.position)
        first = low if low < self._end else None
        return Position(consumer.name, low, first, consumer.is_dropped, consumer.last_consume)

    def _sample(self, now: float) -> Sample:
        if now <= self._away_until:
            return Sample(now, {QUEUE: QueueSample(None)}, is_complete=False, has_silent_broker=True)
        if now <= self._no_list_until:
            return Sample(now, {QUEUE: QueueSample(self._stored, self._end)}, is_complete=False)
        listed = [each for each in self._consumers if self._unlisted[each.name] <= now]
        answering = [each for each in listed if each.name != self._mute or now >= self._mute_until]
        # Rates are up to 10 s old.
        until = now - now % 10
        rates = {
            each.name: 70 * (sum(until - 60 <= time <= until for time in each.consumed_at) / 60 + 0.01)
            for each in answering
        }
        positions = tuple(self._position(each) for each in answering if each.has_queue)
        return Sample(
            now,
            {QUEUE: QueueSample(self._stored, self._end, positions)},
            frozenset(each.name for each in listed),
            len(answering) == len(listed),
            consumed=rates,
            telling=frozenset(rates),
        )
