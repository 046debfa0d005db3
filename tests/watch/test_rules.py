"""What the samples of a rewind show (docs/watched_reset.md)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.held import HOLD
from rewindmq.watch.verdict.reset_watch import ResetWatch
from rewindmq.watch.verdict.states import FINAL, TRANSITIONS, State, transitions_table
from tests.watch.one_queue import QUEUE, OneQueue

PAGE = Path(__file__).parents[2] / "docs" / "watched_reset.md"
OLD, TARGET = 100, 0


def position(offset: int, first: int | None = None, *, client: str = "A", dropped: bool = False) -> Position:
    return Position(client, offset, first, dropped, last_consume=1_000)


def sample(stored: int | None, *positions: Position, consumed: float = 0.0) -> Sample:
    seen = QueueSample(stored, OLD, positions)
    clients = frozenset({"A"})
    return Sample(0.0, {QUEUE: seen}, clients, consumed={"A": consumed})


def new_watch(target: int = TARGET) -> OneQueue:
    return OneQueue(target, QueueSample(OLD, OLD, (position(OLD),)), frozenset("A"))


def test_a_redelivery_that_nothing_contradicts_is_proven_after_the_hold() -> None:
    watch = new_watch()
    assert watch.add(5.0, sample(OLD, position(OLD, dropped=True))) is State.ACCEPTED
    assert watch.add(10.0, sample(0)) is State.STORED
    assert watch.add(11.0, sample(0, position(0, 0))) is State.REDELIVERING
    for second in range(1, 40):
        assert watch.add(11.0 + second, sample(0, position(second, second))) is State.REDELIVERING
    assert watch.add(10.9 + HOLD, sample(20, position(40, 40))) is State.REDELIVERING
    assert watch.add(11.0 + HOLD, sample(30, position(41, 41))) is State.PROVEN


def test_a_stored_offset_above_messages_still_held_is_lost_unless_the_next_commit_repairs_it() -> None:
    repaired, lost = new_watch(), new_watch()
    for watch in (repaired, lost):
        watch.add(11.0, sample(0, position(0, 0)))
        watch.add(12.0, sample(OLD, position(OLD, 3)))
        assert watch.state is State.REDELIVERING
    repaired.add(17.0, sample(5, position(5, 5)))
    repaired.add(19.0, sample(6, position(6, 6)))
    assert repaired.state is State.REDELIVERING
    lost.add(18.1, sample(OLD, position(OLD, 6)))
    assert (lost.state, lost.reason) == (State.LOST, f"{Finding.JUMPED}: consumer A holds those from 6 on")
    assert "R1" in lost.races


@pytest.mark.parametrize("stored", [TARGET, OLD])
def test_an_offset_that_was_asked_for_before_the_consumer_applied_the_reset_is_no_jump(stored: int) -> None:
    """Seen at RocketMQ: a sample takes a while, and a consumer goes back between its two questions."""
    watch = new_watch()
    through = replace(position(OLD), last_consume=99_000)
    watch.add(9.5, sample(OLD, position(OLD, dropped=True)))
    assert watch.add(10.0, sample(OLD, position(10, 10))) is State.REDELIVERING
    for second in range(11, 50):
        assert watch.add(float(second), sample(stored, through)) is not State.LOST
    assert watch.state is not State.PROVEN


def test_a_jump_that_two_samples_show_is_lost_when_its_consumer_leaves() -> None:
    watch = new_watch()
    watch.add(10.0, sample(OLD, position(10, 10)))
    watch.add(10.5, sample(OLD, position(12, 12)))
    assert watch.add(11.0, sample(OLD)) is State.LOST


def test_a_consumer_whose_offset_in_memory_jumped_goes_on_with_what_it_pulls() -> None:
    """Seen at RocketMQ: a pull of before the reset ends after it, and sets the offset in memory."""
    watch = new_watch()
    watch.add(10.5, sample(0, position(0)))
    watch.add(11.0, sample(10, position(20)))
    watch.add(12.0, sample(OLD, position(OLD, 40)))
    assert watch.add(12.5, sample(OLD, position(OLD))) is State.REDELIVERING
    watch.add(13.0, sample(OLD, position(OLD, 60)))
    for second in range(14, 40):
        fresh = replace(position(OLD), last_consume=99_000)
        assert watch.add(float(second), sample(OLD, fresh)) is State.REDELIVERING


def test_a_queue_that_its_consumer_never_dropped_is_lost_as_without_a_notification() -> None:
    watch = new_watch()
    for second in range(40):
        watch.add(float(second), sample(OLD, position(OLD)))
    assert (watch.state, watch.races) == (State.LOST, ("R6b", "R7b", "S4"))


@pytest.mark.parametrize(
    ("had_until", "silent_at", "gives_up_at", "state"),
    [
        pytest.param(0.01, None, 0.5, State.LOST, id="the notification reaches it between two samples"),
        pytest.param(0.01, 0.5, 1.0, State.LOST, id="it does not answer once"),
        pytest.param(0.01, 0.5, 2.5, State.UNKNOWN, id="it does not answer for too long"),
        pytest.param(0.01, None, 5.0, State.UNKNOWN, id="the next sample comes too late"),
        pytest.param(2.5, None, 2.9, State.UNKNOWN, id="it has the queue for too long"),
    ],
)
def test_R6_what_a_consumer_consumes_elsewhere_does_not_hide_a_loss_if_it_gave_the_queue_up_at_once(
    had_until: float, silent_at: float | None, gives_up_at: float, state: State
) -> None:
    """Else it may have redelivered the queue before it gave it up."""
    watch = new_watch()

    def both(*positions: Position) -> Sample:
        seen = sample(OLD, *positions, consumed=150.0)
        return replace(seen, clients=frozenset("AB"), consumed={"A": 150.0, "B": 1.0})

    watch.add(had_until, both(position(OLD)))
    if silent_at is not None:
        watch.add(silent_at, replace(both(), is_complete=False))
    watch.add(gives_up_at, both(position(OLD, dropped=True)))
    for second in range(6, 90):
        watch.add(float(second), both(position(OLD, client="B")))
    watch.end(90.0)
    assert watch.state is state
    assert ("R6" in watch.races) == (state is State.LOST)


def test_a_redelivery_too_fast_to_see_is_never_called_proven_or_lost() -> None:
    watch = new_watch()
    watch.add(5.0, sample(OLD, position(OLD, dropped=True)))
    for second in range(11, 120):
        fresh = Position("A", OLD, None, dropped=False, last_consume=99_000)
        watch.add(float(second), sample(OLD, fresh, consumed=150.0))
    watch.end(120.0)
    assert watch.state is State.UNKNOWN
    assert "cannot be excluded" in watch.reason


def test_a_redelivery_too_fast_to_see_is_not_lost_when_all_consumers_leave() -> None:
    watch = new_watch()
    watch.add(5.0, sample(OLD, position(OLD, dropped=True)))
    fresh = Position("A", OLD, None, dropped=False, last_consume=99_000)
    for second in range(11, 60):
        watch.add(float(second), sample(OLD, fresh, consumed=150.0))
    for second in range(60, 120):
        watch.add(float(second), replace(sample(OLD), clients=frozenset(), consumed={}))
    watch.end(120.0)
    assert watch.state is State.UNKNOWN


def test_a_consumer_that_takes_over_from_one_that_left_does_not_tell_what_that_one_consumed() -> None:
    watch = new_watch()
    watch.add(5.0, sample(OLD, position(OLD, dropped=True)))
    watch.add(11.0, sample(OLD, replace(position(OLD), last_consume=99_000), consumed=150.0))
    heir = replace(sample(OLD, position(OLD, client="B")), clients=frozenset({"B"}), consumed={"B": 0.0})
    for second in range(12, 120):
        watch.add(float(second), heir)
    watch.end(120.0)
    assert watch.state is State.UNKNOWN
    assert "has left" in watch.reason


@pytest.mark.parametrize(
    ("consumed", "late", "state"),
    [(40.0, 63.0, State.LOST), (60.0, 63.0, State.UNKNOWN), (0.0, 81.0, State.UNKNOWN)],
)
def test_two_samples_show_a_loss_if_the_machine_stood_still_between_them(
    consumed: float, late: float, state: State
) -> None:
    """Their minutes overlap, so both together show all that was consumed since the reset."""
    watch = new_watch()
    working = replace(position(OLD), last_consume=99_000)
    for second in range(3, 46):
        watch.add(float(second), sample(OLD, working, consumed=consumed))
    watch.add(late, sample(OLD, working, consumed=consumed))
    watch.end(90.0)
    assert watch.state is state


def test_a_jump_is_not_taken_for_lasting_because_the_consumer_does_not_answer_once() -> None:
    watch = new_watch()
    watch.add(11.0, sample(0, position(0, 0)))
    watch.add(12.0, sample(OLD, position(OLD, 3)))
    assert watch.add(12.5, replace(sample(OLD), is_complete=False)) is State.REDELIVERING
    watch.add(13.0, sample(5, position(5, 5)))
    assert watch.add(19.0, sample(6, position(6, 6))) is State.REDELIVERING


def test_too_few_messages_consumed_are_no_loss_if_the_consumers_do_not_take_every_message() -> None:
    """A subscription to tags leaves out an unknown number of the messages to be redelivered."""
    watch = new_watch()
    watch.add(5.0, sample(OLD, position(OLD, dropped=True)))
    watch.add(10.0, sample(TARGET))
    fresh = replace(position(OLD), last_consume=99_000)
    for second in range(11, 120):
        watch.add(float(second), replace(sample(OLD, fresh), is_filtered=True))
    watch.end(120.0)
    assert watch.state is State.UNKNOWN
    assert "subscription" in watch.reason


def test_a_queue_that_its_consumer_never_dropped_is_lost_with_any_subscription() -> None:
    watch = new_watch()
    for second in range(40):
        watch.add(float(second), replace(sample(OLD, position(OLD)), is_filtered=True))
    assert watch.state is State.LOST


def test_a_consumer_whose_rates_do_not_count_is_not_said_to_have_consumed_nothing() -> None:
    watch = new_watch()
    watch.add(5.0, sample(OLD, position(OLD, dropped=True)))
    fresh = replace(position(OLD), last_consume=99_000)
    for second in range(11, 120):
        watch.add(float(second), replace(sample(OLD, fresh), consumed={}))
    watch.end(120.0)
    assert watch.state is State.UNKNOWN
    assert watch.reason == (
        "consumer A had the queue, and does not tell how many of the 100 messages it consumed; it was not"
        " counted, because broker-a does not tell how many messages the group fetched: preview again when the"
        " group has been idle for a minute"
    )


def test_messages_held_since_before_the_reset_are_no_redelivery() -> None:
    """The stored offset had jumped past messages that the consumer still had, as after a lost reset."""
    busy = QueueSample(OLD, OLD, (position(20, 20),))
    ignored, taken_over, moved_back = (OneQueue(TARGET, busy, frozenset("A")) for _ in range(3))
    for second in range(1, 50):
        low = 20 + second
        assert ignored.add(float(second), sample(low, position(low, low))) is not State.PROVEN
    ignored.end(50.0)
    assert ignored.state is State.UNKNOWN
    taken_over.add(1.0, sample(OLD, position(20, 20, dropped=True)))
    assert taken_over.add(11.0, sample(30, position(30, 30))) is State.REDELIVERING
    assert moved_back.add(1.0, sample(0, position(0, 0))) is State.REDELIVERING


def test_an_offset_that_jumped_before_the_reset_and_stays_there_is_lost() -> None:
    watch = OneQueue(TARGET, QueueSample(OLD, OLD, (position(20, 20),)), frozenset("A"))
    for second in range(1, 9):
        watch.add(float(second), sample(OLD, position(20, 20)))
    assert (watch.state, watch.reason) == (
        State.LOST,
        f"{Finding.JUMPED}: consumer A holds those from 20 on",
    )


def test_a_consumer_that_commits_for_another_that_has_not_yet_given_the_queue_up_is_no_jump() -> None:
    """Without a notification of the broker, the earlier consumer learns of the later one within 20 s."""
    watch = new_watch()
    earlier = position(3, 3)
    watch.add(11.0, sample(3, earlier))
    for second in range(12, 30):
        low = 3 + second - 11
        seen = sample(low, earlier, position(low, low, client="B"))
        assert watch.add(float(second), seen) is State.REDELIVERING
    assert watch.add(30.0, sample(30, position(30, 30, client="B"))) is State.REDELIVERING


def test_a_target_that_consumers_had_passed_but_not_stored_is_a_rewind() -> None:
    """Consumers store what they have consumed every 5 s: the stored offset alone would make this a skip."""
    before = Sample(0.0, {QUEUE: QueueSample(50, OLD, (position(90, 90),))}, frozenset({"A"}))
    watch = ResetWatch(before, {QUEUE: 70}, 0.0)
    (queue,) = watch.queues
    assert (queue.old, queue.is_rewind) == (90, True)
    for second in range(1, 60):
        watch.add(
            replace(
                sample(OLD, replace(position(OLD), last_consume=99_000), consumed=100.0), at=float(second)
            )
        )
    assert queue.state is not State.PROVEN
    # In front of what they hold, it is a skip; behind the stored offset, a rewind to below it proves enough.
    assert [ResetWatch(before, {QUEUE: to}, 0.0).queues[0].old for to in (90, 95, 40)] == [50, 50, 50]


def test_a_pull_consumer_that_reports_no_queue_may_have_been_reset() -> None:
    kept, lost = new_watch(), new_watch()
    pulling = replace(sample(OLD), is_pulling=True)
    kept.add(0.5, replace(sample(TARGET), is_pulling=True))
    for second in range(1, 60):
        for watch in (kept, lost):
            watch.add(float(second), pulling)
    assert lost.state is State.LOST
    kept.end(60.0)
    assert kept.state is State.UNKNOWN


def test_an_offset_in_memory_alone_is_no_redelivery() -> None:
    """A consumer reports the stored offset for a queue that it has not pulled yet."""
    watch = new_watch()
    assert watch.add(11.0, sample(0, position(0))) is State.STORED


def test_a_redelivery_that_ends_at_once_far_below_the_old_offset_is_not_taken_for_finished() -> None:
    """The consumer may have lost the queue, and taken it over again at the old offset (R3a)."""
    watch = new_watch()
    watch.add(11.0, sample(0, position(0, 0)))
    watch.add(12.0, sample(1, position(1, 1)))
    for second in range(13, 70):
        watch.add(float(second), sample(OLD, position(OLD)))
    assert watch.state is not State.PROVEN


def test_a_broker_that_does_not_answer_proves_nothing() -> None:
    watch = new_watch()
    for second in range(130):
        watch.add(float(second), sample(None))
    watch.end(130.0)
    assert watch.state is State.UNKNOWN
    assert watch.reason == (
        "broker-a did not answer 130 of the samples, 0.0 to 129.0 s after the reset: reset again when"
        " broker-a answers"
    )


def test_a_broker_that_does_not_answer_once_hides_no_other_race() -> None:
    watch = new_watch()
    joined = Position("B", OLD, None, dropped=False, last_consume=99_000)
    for second in range(3, 60):
        seen = replace(sample(OLD, joined), clients=frozenset("AB"), consumed={"A": 0.0, "B": 0.0})
        watch.add(float(second), sample(None) if second == 7 else seen)
    assert (watch.state, watch.races) == (State.LOST, ("R11", "S3", "R6"))


def test_a_redelivery_is_not_proven_by_a_time_in_which_the_broker_did_not_answer() -> None:
    watch = new_watch()
    watch.add(11.0, sample(0, position(0, 0)))
    watch.add(12.0, sample(10, position(10, 10)))
    for second in range(13, 52):
        watch.add(float(second), sample(None))
    assert watch.add(52.0, sample(OLD, position(OLD))) is State.REDELIVERING
    watch.end(130.0)
    assert watch.state is State.UNKNOWN


def test_a_broadcasting_consumer_proves_nothing_because_it_keeps_its_own_offsets() -> None:
    watch = new_watch()
    seen = replace(sample(0, position(50, 50)), is_broadcasting=True)
    for second in range(60):
        watch.add(float(second), seen)
    assert watch.state is not State.PROVEN


def test_every_state_that_is_not_final_ends_as_unknown_when_the_time_is_over() -> None:
    assert {State.PROVEN, State.LOST, State.UNKNOWN} == FINAL
    assert all(TRANSITIONS[state][Finding.OVER] is State.UNKNOWN for state in State if state not in FINAL)


def test_the_page_shows_the_table_of_transitions() -> None:
    assert transitions_table() in PAGE.read_text()
