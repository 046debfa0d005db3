"""The record of a watched reset, from its samples; and the drawing of a queue, from its record."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import msgspec

from rewindmq import MessageQueue
from rewindmq.client.admin.watched_reset.run import Began, Repair, ResetVerdict
from rewindmq.dashboard.resets import recorder as recording
from rewindmq.dashboard.resets.lanes import copied, draw_queue
from rewindmq.dashboard.resets.record import VERSION, QueueRecord, ResetRecord, Status
from rewindmq.dashboard.resets.recorder import ResetRecorder
from rewindmq.watch.evidence.moment import Case
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.verdict.queue_watch import QueueWatch
from rewindmq.watch.verdict.reset_watch import Change, Waiting
from rewindmq.watch.verdict.states import State

# Whatever peers call themselves.
HOSTILE = "c@<script>&\"'"
QUEUE = MessageQueue("orders", "broker-<b>", 0)


def new_record() -> ResetRecord:
    return ResetRecord(version=VERSION, id="x", group="g", topic="orders", timestamp=0, began_ms=1)


def position(offset: int, first: int | None = None, *, dropped: bool = False) -> Position:
    return Position(HOSTILE, offset, first, dropped, 0)


def sample(at: float, stored: int | None, *positions: Position) -> Sample:
    return Sample(at, {QUEUE: QueueSample(stored, 10, positions)}, frozenset({HOSTILE}))


class Played:
    """A watched reset of one queue, from offset 6 to 0, that began at second 100 of the clock."""

    def __init__(self, target: int = 0) -> None:
        self.record = new_record()
        self.recorder = ResetRecorder(self.record)
        before = sample(99.9, 6, position(6, 6))
        self.watch = QueueWatch(Case(QUEUE, 6, target, before.queues[QUEUE], frozenset()))
        self.recorder.add(Began(100.0, before, (self.watch,), {QUEUE.broker_name: "classic"}), 100.2)
        (self.row,) = self.record.queues

    def become(self, state: State, at: float, reason: str = "", *races: str) -> None:
        self.watch.state, self.watch.reason, self.watch.races = state, reason, races
        self.recorder.add(Change(at - 100.0, self.watch, state), at)


def test_a_consumer_that_holds_messages_of_before_the_reset_is_named_until_the_redelivery_begins() -> None:
    played = Played()
    assert (played.row.holder, played.row.held_from) == (HOSTILE, 6)
    played.recorder.observe(sample(101.0, 0, position(6, 6, dropped=True)))
    assert (played.row.holder, played.row.held_from, played.row.consumer) == (HOSTILE, 6, None)
    played.recorder.observe(sample(102.0, 0))
    assert played.row.holder is None
    played.recorder.observe(sample(112.0, 0, position(0, 0)))
    assert (played.row.holder, played.row.consumer) == (None, HOSTILE)
    played.become(State.REDELIVERING, 112.0)
    # Messages past the old offset are new ones by now.
    played.recorder.observe(sample(130.0, 6, position(8, 7)))
    assert played.row.holder is None


def test_after_a_skip_the_messages_below_the_target_are_the_old_ones() -> None:
    played = Played(target=9)
    played.recorder.observe(sample(101.0, 9, position(6, 7)))
    assert played.row.held_from == 7
    played.recorder.observe(sample(113.0, 9, position(9, 9)))
    assert played.row.holder is None


def test_a_broker_that_does_not_answer_leaves_the_stored_offset_as_it_was() -> None:
    played = Played()
    played.recorder.observe(sample(101.0, 0))
    played.recorder.observe(sample(102.0, None))
    assert played.row.stored == 0
    assert [seen.stored for seen in played.row.seen] == [6, 0, None]


def test_a_running_watch_shows_its_time_and_what_each_queue_waits_for() -> None:
    played = Played()
    played.recorder.add(Waiting(12.34, 107.66, (played.watch,), 1), 112.34)
    assert (played.record.passed, played.record.left) == (12.3, 107.7)
    assert played.row.waits_for == "the first sample"
    played.become(State.LOST, 130.0, "why")
    assert played.row.waits_for == ""


def test_states_repairs_and_the_verdict_are_counted_from_the_first_reset() -> None:
    played = Played()
    played.become(State.LOST, 130.0, "why", "R1", "R2")
    assert (played.row.since, played.row.races, played.record.counts) == (30.0, ("R1", "R2"), {"lost": 1})
    played.recorder.add(Repair(1, (QUEUE,), {QUEUE.broker_name: "server"}), 131.0)
    assert (played.row.state, played.row.reason, played.record.repairs) == (State.ACCEPTED, "", 1)
    # A repair's watch counts from the repair.
    played.watch.reason, played.watch.races, played.watch.state = "", (), State.PROVEN
    played.recorder.add(Change(40.0, played.watch, State.PROVEN), 171.0)
    played.recorder.add(ResetVerdict(State.PROVEN, (played.watch,), 1), 171.0)
    assert played.record.status is Status.PROVEN
    assert [(event.at, event.kind) for event in played.record.events] == [
        (0.0, "reset"),
        (30.0, "lost"),
        (31.0, "repair"),
        (71.0, "proven"),
    ]


class Uncountable(list[QueueRecord]):
    """A list that may not be walked through."""

    def __iter__(self) -> Iterator[QueueRecord]:
        raise AssertionError("every queue was looked at")


def test_a_change_of_one_queue_does_not_look_at_all_others() -> None:
    """1,000 queues change in one sample: each look at all of them would be a million looks."""
    played = Played()
    played.record.queues = Uncountable(played.record.queues)
    for state in (State.STORED, State.REDELIVERING, State.LOST):
        played.become(state, 130.0)
        assert played.record.counts == {str(state): 1}


def test_a_repair_that_failed_leaves_its_queues_lost_and_says_why() -> None:
    played = Played()
    played.become(State.LOST, 130.0, "why", "R1")
    played.recorder.add(Repair(1, (QUEUE,), {}, "refused"), 131.0)
    assert (played.row.state, played.record.repairs) == (State.LOST, 0)
    assert played.record.events[-1].text == "broker-<b>/0 cannot be reset again: refused"


def test_a_record_keeps_what_changed_and_says_when_it_is_full() -> None:
    played = Played()
    for number in range(2 * recording.MAX_SEEN):
        for _ in range(2):
            played.recorder.observe(sample(101.0 + number, number, position(number)))
    assert len(played.row.seen) == recording.MAX_SEEN
    assert played.row.is_cut
    for number in range(recording.MAX_EVENTS):
        played.become(State.STORED, 101.0 + number)
    assert len(played.record.events) == recording.MAX_EVENTS
    assert played.record.is_cut
    # Far below what a history reads.
    assert len(msgspec.json.encode(played.record)) < 1_000_000


def test_the_drawing_of_a_queue_has_a_lane_for_each_process_and_escapes_every_name() -> None:
    played = Played()
    played.recorder.observe(sample(101.0, 6))
    played.recorder.observe(sample(112.0, 0, position(0, 0)))
    played.become(State.REDELIVERING, 112.0)
    played.recorder.observe(sample(114.0, 6, position(0, 0)))
    played.become(State.LOST, 120.0, "why", "R1")
    lanes = draw_queue(*copied(played.record, played.row))
    assert lanes is not None
    assert lanes.consumers == {"consumer 1": HOSTILE}
    texts = {text for node in ET.fromstring(lanes.html).iter() if (text := node.text)}
    assert {"dashboard", "broker-<b>", "consumer 1", "reset to 0", "gave the queue up", "back to 0"} <= texts
    assert {"stored 0", "stored 6", "redelivering", "lost"} <= texts
    assert "offence-point" in lanes.html
    assert "<script" not in lanes.html


def test_a_queue_without_a_sample_has_no_drawing() -> None:
    played = Played()
    played.row.seen.clear()
    assert draw_queue(*copied(played.record, played.row)) is None
