"""What ``Rewinds`` notes, and what ``Finished`` and ``Overtaken`` find in it, against a model that sees all.

One queue, two consumers and one broker. Consumers take the queue, pull, receive, consume, commit and leave in
any order, and lose their connections; pulls wait in the broker, commits come late, messages expire, the group
is reset again, the broker restarts. The watcher asks the broker first and then each consumer, as it does.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from rewindmq import MessageQueue
from rewindmq.broker.clients.consumer_manager import ConsumerManager
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.store.store import MessageStore
from rewindmq.watch.evidence.group import GroupSample
from rewindmq.watch.evidence.moment import Case, Counted, Moment
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import QueueSample
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.finished import Finished
from rewindmq.watch.rules.overtaken import Overtaken
from tests.support.answers import present
from tests.support.properties import few_and_all

QUEUE = ("G", "T", 0)
OLD, END = 5, 6
NAMES = ("A", "B")
CONSUMERS = st.sampled_from(NAMES)
OFFSETS = st.integers(0, END)
COUNTS = st.integers(1, END)
# Seconds between two samples: rules that wait for some seconds have waited at the second one.
STEP = 30.0


@dataclass(eq=False)
class Link:
    """A consumer's connection."""

    remote_address: str


@dataclass(eq=False)
class Taken:
    """A queue that a consumer has taken: what it holds, and what it pulls next."""

    next: int
    held: set[int] = field(default_factory=set)
    # The response on its way, and whether the broker keeps the pull.
    arriving: range | None = None
    is_waiting: bool = False

    @property
    def low(self) -> int:
        return min(self.held, default=self.next)


@dataclass(eq=False)
class Waiting:
    """A suspended pull. Its consumer may have given the queue up."""

    link: Link
    taken: Taken
    offset: int


class Cluster(RuleBasedStateMachine):
    """A broker, two consumers, and a watcher."""

    def min_offset(self, _topic: str, _queue_id: int) -> int:
        return self.first

    def max_offset(self, _topic: str, _queue_id: int) -> int:
        return self.end

    @initialize(to=st.integers(0, OLD - 1), is_classic=st.booleans(), holder=CONSUMERS)
    def start(self, to: int, is_classic: bool, holder: str) -> None:
        self.first, self.end, self.stored = 0, END, OLD
        self.target, self.is_classic = to, is_classic
        self.links = {name: Link(name) for name in NAMES}
        self.taken: dict[str, Taken | None] = dict.fromkeys(NAMES)
        self.waiting: list[Waiting] = []
        self.now = 0
        self.new_rewinds()
        self.take(holder)
        # What was handed out, and what of it was consumed, since the reset took effect.
        self.handed_out: set[int] = set()
        self.consumed: set[int] = set()
        self.fresh: dict[Taken, set[int]] = {}
        case = Case(MessageQueue("T", "b", 0), OLD, to, QueueSample(OLD, END), frozenset(NAMES))
        self.finished, self.overtaken = Finished(case), Overtaken(case)
        self.row: QueueSample | None = None
        self.positions: dict[str, Position | None] = {}
        self.seconds = 0.0
        self.was_away = False
        self.found: set[Finding] = set()
        self.reset(to)

    def new_rewinds(self) -> None:
        store = cast("MessageStore", self)
        self.rewinds = Rewinds(lambda: self.now, store, ConsumerManager(cast("Any", None)))

    # Resets.

    @rule(to=OFFSETS)
    def reset(self, to: int) -> None:
        self.now += 1
        if self.is_classic:
            self.rewinds.expect("G", "T", {0: to})
            return
        before, self.stored = self.stored, to
        self.rewinds.on_reset("G", "T", {0: to}, {0: before})
        self.take_effect(to)

    def take_effect(self, to: int) -> None:
        if to == self.target:
            self.handed_out, self.consumed, self.fresh = set(), set(), {}

    @rule(name=CONSUMERS)
    def apply(self, name: str) -> None:
        """A consumer applies the classic reset."""
        to = self.rewinds.awaited.get(QUEUE)
        if to is not None and self.taken[name] is not None:
            self.taken[name] = None
            self.commit(to)
            self.take_effect(to)

    # Consumers.

    @rule(name=CONSUMERS)
    def take(self, name: str) -> None:
        if self.taken[name] is None:
            self.rewinds.on_query(cast("Any", self.links[name]), *QUEUE)
            self.taken[name] = Taken(self.stored)

    @rule(name=CONSUMERS, commits=st.booleans())
    def give_up(self, name: str, commits: bool) -> None:
        taken, self.taken[name] = self.taken[name], None
        if taken is not None and commits:
            self.commit(taken.low)

    @rule(name=CONSUMERS, count=COUNTS, commits=st.booleans())
    def pull(self, name: str, count: int, commits: bool) -> None:
        taken = self.taken[name]
        if taken is None or taken.arriving is not None or taken.is_waiting:
            return
        offset, link = taken.next, self.links[name]
        is_moved = not self.first <= offset <= self.end
        corrected = self.first if offset < self.first else self.end
        next_offset = corrected if is_moved else min(offset + count, self.end)
        if commits:
            self.commit(taken.low)
        self.note_pull(link, offset, next_offset, is_moved=is_moved, was_suspended=False)
        if is_moved:
            self.taken[name] = None
            self.commit(corrected)
        elif next_offset == offset:
            taken.is_waiting = True
            self.waiting.append(Waiting(link, taken, offset))
        else:
            self.hand_out(taken, range(offset, next_offset))

    def note_pull(
        self, link: Link, offset: int, next_offset: int, *, is_moved: bool, was_suspended: bool
    ) -> None:
        if QUEUE in self.rewinds.open:
            self.rewinds.on_pull(
                cast("Any", link), QUEUE, offset, next_offset, is_moved=is_moved, was_suspended=was_suspended
            )

    def hand_out(self, taken: Taken, offsets: range) -> None:
        taken.arriving = offsets
        self.handed_out |= {*offsets}
        self.fresh.setdefault(taken, set()).update(offsets)

    @rule(name=CONSUMERS)
    def receive(self, name: str) -> None:
        taken = self.taken[name]
        if taken is not None and taken.arriving is not None:
            taken.held |= {*taken.arriving}
            taken.next, taken.arriving = taken.arriving.stop, None

    @rule(name=CONSUMERS, takes_last=st.booleans())
    def consume(self, name: str, takes_last: bool) -> None:
        taken = self.taken[name]
        if taken is not None and taken.held:
            offset = max(taken.held) if takes_last else min(taken.held)
            taken.held.remove(offset)
            if offset in self.fresh.get(taken, ()):
                self.consumed.add(offset)

    @rule(name=CONSUMERS)
    def consume_all(self, name: str) -> None:
        taken = self.taken[name]
        while taken is not None and taken.held:
            self.consume(name, takes_last=False)

    @rule(name=CONSUMERS)
    def commit_own(self, name: str) -> None:
        taken = self.taken[name]
        if taken is not None:
            self.commit(taken.low)

    @rule(offset=OFFSETS)
    def commit(self, offset: int) -> None:
        """Also a late commit. See ``OffsetCommitter``."""
        before, self.stored = self.stored, offset
        if before > offset or self.rewinds.open or self.rewinds.awaited:
            self.rewinds.on_commit("G", "T", 0, offset, before)

    @rule(name=CONSUMERS)
    def reconnect(self, name: str) -> None:
        link, taken = self.links[name], self.taken[name]
        self.rewinds.on_close(cast("Any", link))
        self.links[name] = Link(name)
        self.waiting = [pull for pull in self.waiting if pull.link is not link]
        if taken is not None:
            taken.arriving, taken.is_waiting = None, False

    @rule(name=CONSUMERS)
    def work(self, name: str) -> None:
        """Take the queue, and consume and commit a response."""
        self.take(name)
        self.pull(name, END, commits=False)
        self.receive(name)
        self.consume_all(name)
        self.commit_own(name)

    # The broker.

    @rule()
    def send(self) -> None:
        self.end += 1
        waiting, self.waiting = self.waiting, []
        for pull in waiting:
            pull.taken.is_waiting = False
            self.note_pull(pull.link, pull.offset, self.end, is_moved=False, was_suspended=True)
            if pull.taken in self.taken.values():
                self.hand_out(pull.taken, range(pull.offset, self.end))

    @rule()
    def expire(self) -> None:
        self.first = min(self.first + 1, self.end)

    @rule()
    def restart(self) -> None:
        for name in NAMES:
            self.reconnect(name)
        self.now += 1
        self.new_rewinds()

    # The watcher.

    @rule()
    def ask_all(self) -> None:
        self.ask_broker()
        for name in NAMES:
            self.ask_consumer(name)

    @rule()
    def ask_broker(self) -> None:
        if self.row is None:
            rewind = copy.deepcopy(self.rewinds.find(*QUEUE))
            self.row = QueueSample(self.stored, self.end, (), rewind, self.rewinds.awaited.get(QUEUE))
            self.has_hole = bool({*range(max(self.target, self.first), self.stored)} - self.handed_out)

    @rule(name=CONSUMERS)
    def ask_consumer(self, name: str) -> None:
        if self.row is None or name in self.positions:
            return
        taken = self.taken[name]
        if taken is None:
            self.positions[name] = None
        else:
            self.positions[name] = Position(
                name, taken.low, min(taken.held, default=None), dropped=False, last_consume=0
            )
        if len(self.positions) == len(NAMES):
            self.take_sample(self.row)

    def take_sample(self, row: QueueSample) -> None:
        live = tuple(position for position in self.positions.values() if position is not None)
        seen = QueueSample(row.stored, row.max_offset, live, row.rewind, row.awaited)
        moment = Moment(
            self.seconds + STEP,
            self.seconds,
            present(row.stored),
            seen,
            cast("GroupSample", None),
            Counted(),
            False,
        )
        self.seconds += STEP
        self.row, self.positions = None, {}
        if self.finished.add(moment):
            self.found.add(Finding.FINISHED)
            missing = {*range(max(self.target, self.first), END)} - self.consumed
            assert not missing, (missing, live, row)
        if self.overtaken.add(moment):
            self.found.add(Finding.OVERTAKEN)
            assert self.has_hole, (live, row)


_STEPS = settings(stateful_step_count=80, deadline=None, derandomize=True)


@pytest.mark.parametrize("examples", few_and_all(40, 400))
def test_a_finding_agrees_with_what_was_handed_out_and_consumed(examples: int) -> None:
    run_state_machine_as_test(Cluster, settings=settings(_STEPS, max_examples=examples))


@pytest.mark.parametrize("is_classic", [False, True])
def test_the_model_proves_a_kept_reset(is_classic: bool) -> None:
    cluster = Cluster()
    cluster.start(0, is_classic, "A")
    cluster.apply("A")
    cluster.give_up("A", commits=False)
    cluster.take("A")
    for _ in range(2):
        cluster.pull("A", END, commits=False)
        cluster.receive("A")
    cluster.consume_all("A")
    cluster.ask_all()
    cluster.ask_all()
    assert cluster.found == {Finding.FINISHED}


def test_the_model_loses_a_reset_that_a_late_commit_undid() -> None:
    cluster = Cluster()
    cluster.start(0, False, "A")
    cluster.give_up("A", commits=True)
    cluster.ask_all()
    cluster.ask_all()
    assert cluster.found == {Finding.OVERTAKEN}
