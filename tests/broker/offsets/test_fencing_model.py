"""The law of fenced resets on the table and the committer themselves, against a model that only takes notes.

Every commit a client makes stands for a delivery, and the model knows under which epoch that one happened.
What is stored may come from an older epoch in one case only, which ``docs/reset.md`` names: a client without
epochs, an offset within what it has been given, or told, again since the reset.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from rewindmq.broker.clients.consumer_manager import ConsumerManager
from rewindmq.broker.offsets.committer import Commit, OffsetCommitter
from rewindmq.broker.offsets.fencing import FencedCommits, Fencing
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.race.sim.disk import SimDisk
from tests.support.answers import present
from tests.support.properties import few_and_all

END = 12
QUEUE = ("G", "T", 0)
OFFSETS = st.integers(0, END)
CLIENTS = st.integers(0, 1)


class Bounds:
    """The queue of the model, of which the rewinds ask the store."""

    def min_offset(self, topic: str, queue_id: int) -> int:
        return 0

    def max_offset(self, topic: str, queue_id: int) -> int:
        return END


class Member:
    """One client: its connection, the offsets of its pull loops, and all its deliveries."""

    remote_address = "client:1"

    def __init__(self, epoch: int | None) -> None:
        # The broker uses only the identity and the address of a connection.
        self.connection = cast("Connection", self)
        self.epoch = epoch
        self.position: int | None = None
        # (epoch of the record at that time, first, next) of each answer; first = next where it was only told.
        self.given: list[tuple[int, int, int]] = []
        # How many of them came over an earlier connection.
        self.before = 0

    def has_again(self, epoch: int, offset: int) -> bool:
        return any(of == epoch and first <= offset <= end for of, first, end in self.given[self.before :])


class Broker(RuleBasedStateMachine):
    @initialize(first=OFFSETS)
    def start(self, first: int) -> None:
        self.disk = SimDisk(lambda: 0)
        self.load()
        self.offsets.commit(*QUEUE, first)
        self.offsets.persist()
        # The epoch of the delivery behind the stored offset, and behind the saved offset.
        self.stored_of = self.saved_of = 0
        self.acknowledged = 0
        self.legacy = [Member(None), Member(None)]
        self.knowing = [Member(0), Member(0)]

    def load(self) -> None:
        self.offsets = ConsumerOffsetTable(Path("/store/consumerOffset.json"), self.disk)
        self.offsets.load()
        self.fencing = Fencing()
        self.fenced = FencedCommits()
        runtime = system_runtime()
        consumers = ConsumerManager(lambda group: None)
        rewinds = Rewinds(lambda: 0, cast("MessageStore", Bounds()), consumers)
        self.committer = OffsetCommitter(runtime, self.offsets, self.fencing, self.fenced, consumers, rewinds)

    @property
    def record(self) -> Any:
        return self.offsets.record(*QUEUE)

    # Actions of clients.

    @rule(which=CLIENTS)
    def legacy_asks(self, which: int) -> None:
        member = self.legacy[which]
        record = self.record
        if record.epoch:
            self.fencing.on_query(member.connection, QUEUE, record)
        member.position = record.offset
        member.given.append((record.epoch, record.offset, record.offset))

    @rule(which=CLIENTS, count=st.integers(0, 4), stray=st.none() | OFFSETS)
    def legacy_pulls(self, which: int, count: int, stray: int | None) -> None:
        """At its position, or with another chain anywhere."""
        member = self.legacy[which]
        record = self.record
        offset = stray if stray is not None else member.position
        if offset is None:
            return
        if not self.fencing.admits_pull(member.connection, QUEUE, offset, None, record):
            member.position = record.offset
            return
        next_offset = max(min(offset + count, END), offset)
        if record.epoch:
            self.fencing.on_delivery(member.connection, QUEUE, next_offset, record.epoch, moved=False)
        member.given.append((record.epoch, offset, next_offset))
        member.position = next_offset

    @rule(which=CLIENTS, pick=st.integers(0, 30), within=st.integers(0, 4))
    def legacy_commits_what_it_was_given_some_time(self, which: int, pick: int, within: int) -> None:
        member = self.legacy[which]
        if not member.given:
            return
        epoch, first, next_offset = member.given[-1 - pick % len(member.given)]
        offset = min(first + within, next_offset)
        self.commit(member, offset, None, epoch)

    @rule(which=CLIENTS)
    def legacy_reconnects(self, which: int) -> None:
        old = self.legacy[which]
        self.fencing.forget(old.connection)
        new = self.legacy[which] = Member(None)
        new.position = old.position
        new.given, new.before = list(old.given), len(old.given)

    @rule(which=CLIENTS, offset=OFFSETS)
    def knowing_commits(self, which: int, offset: int) -> None:
        member = self.knowing[which]
        record = self.record
        accepted = self.commit(member, offset, member.epoch, present(member.epoch))
        assert accepted == (member.epoch == record.epoch)
        if not accepted:
            member.epoch = record.epoch

    @rule(which=CLIENTS, offset=OFFSETS)
    def knowing_pulls(self, which: int, offset: int) -> None:
        member = self.knowing[which]
        record = self.record
        if not self.fencing.admits_pull(member.connection, QUEUE, offset, member.epoch, record):
            assert member.epoch != record.epoch
            member.epoch = record.epoch

    def commit(self, member: Member, offset: int, epoch: int | None, delivered_in: int) -> bool:
        """Whether it was stored; either way the whole state has to say so."""
        before, listed = self.record, self.fenced.listed(None, None).total
        told = self.committer.commit(
            Commit(member.connection, *QUEUE, offset, epoch, RequestCode.UPDATE_CONSUMER_OFFSET)
        )
        if told is None:
            assert self.record == (offset, before.epoch)
            assert self.fenced.listed(None, None).total == listed
            is_excused = epoch is None and member.has_again(before.epoch, offset)
            self.stored_of = before.epoch if is_excused else delivered_in
            return True
        assert told == self.record == before
        assert self.fenced.listed(None, None).total == listed + 1
        return False

    # Actions of the admin client and the timer, and crashes.

    @rule(offset=OFFSETS, is_refused=st.booleans())
    def reset(self, offset: int, is_refused: bool) -> None:
        before = self.record
        changes = self.offsets.take_reset("G", "T", {0: offset})
        assert self.record == before
        if is_refused:
            # As ``save`` does when the disk refuses.
            self.offsets._refused = changes.offsets.keys()
            return
        self.offsets.save(changes)
        assert self.offsets.reset("G", "T", {0: offset}) == {0: before.epoch + 1}
        assert self.record == (offset, before.epoch + 1)
        self.stored_of = self.saved_of = self.acknowledged = before.epoch + 1

    @rule()
    def flush(self) -> None:
        self.offsets.persist()
        self.saved_of = self.stored_of

    @rule(between_write_and_answer=st.none() | OFFSETS)
    def crash(self, between_write_and_answer: int | None) -> None:
        if between_write_and_answer is not None:
            self.offsets.save(self.offsets.take_reset("G", "T", {0: between_write_and_answer}))
            self.saved_of = self.record.epoch + 1
        self.load()
        self.stored_of = self.saved_of

    @invariant()
    def what_is_stored_is_of_the_epoch_it_stands_under(self) -> None:
        if hasattr(self, "offsets"):
            assert self.record.epoch >= self.acknowledged
            assert self.stored_of == self.record.epoch


_STEPS = settings(stateful_step_count=50, deadline=None, derandomize=True)


@pytest.mark.parametrize("examples", few_and_all(15, 200))
def test_nothing_is_stored_under_an_epoch_it_was_not_delivered_in(examples: int) -> None:
    run_state_machine_as_test(Broker, settings=settings(_STEPS, max_examples=examples))


def test_the_model_meets_what_it_is_about() -> None:
    """A stale commit of each kind of client is refused, and counted."""
    broker = Broker()
    broker.start(10)
    broker.legacy_asks(0)
    broker.legacy_pulls(0, 2, None)
    broker.reset(0, is_refused=False)
    broker.legacy_commits_what_it_was_given_some_time(0, 0, 2)
    broker.knowing_commits(0, 12)
    assert [commit.offset for commit in broker.fenced.listed(None, None).commits] == [12, 12]
    broker.legacy_pulls(0, 2, None)
    for _, count in itertools.product(range(3), (4,)):
        broker.legacy_pulls(0, count, None)
    broker.legacy_commits_what_it_was_given_some_time(0, 0, 4)
    assert broker.record == (12, 1)
