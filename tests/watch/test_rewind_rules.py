"""What the rewinds of RewindMQ's brokers show (docs/watched_reset.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewindmq.protocol.body.rewind import PullRun, Rewind
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.finding import Finding
from rewindmq.watch.verdict.states import State
from tests.watch.one_queue import QUEUE, OneQueue

OLD, END = 10, 12
ALL = PullRun("A", 0, END, END, True)


def position(low: int, *, first: int | None = None, client: str = "A", last_consume: int = 9_000) -> Position:
    return Position(client, low, first, False, last_consume)


def rewind(*runs: PullRun, number: int = 2, handed_out: int = END, passed: int | None = None) -> Rewind:
    return Rewind(number, 1_000, OLD, 0, 0, END, handed_out, handed_out, passed, list(runs))


def sample(stored: int, seen: Rewind | None, *positions: Position, awaited: int | None = None) -> Sample:
    row = QueueSample(stored, END, positions, seen, awaited)
    clients = frozenset(each.client_id for each in positions) or frozenset("A")
    return Sample(0.0, {QUEUE: row}, clients, consumed=dict.fromkeys(sorted(clients), 1_000.0))


def new_watch(earlier: Rewind | None = None) -> OneQueue:
    before = QueueSample(OLD, END, (position(OLD, last_consume=1_000),), earlier)
    return OneQueue(0, before, frozenset("A"))


DONE = sample(END, rewind(ALL), position(END))


def test_a_consumer_that_is_through_what_was_handed_out_is_proof_at_the_next_sample() -> None:
    watch = new_watch()
    assert watch.add(11.0, DONE) is not State.PROVEN
    assert watch.add(11.5, DONE) is State.PROVEN


def test_new_messages_need_not_be_consumed() -> None:
    watch = new_watch(rewind(ALL, number=1))
    busy = sample(END + 5, rewind(replace_run(next=90, asked=80)), position(70, first=70))
    assert [watch.add(11.0, busy), watch.add(11.5, busy)][-1] is State.PROVEN


def replace_run(**changes: object) -> PullRun:
    fields = {"client_id": "A", "first": 0, "next": END, "asked": END, "is_current": True, **changes}
    return PullRun(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(sample(END, rewind(replace_run(asked=5)), position(END)), id="not received"),
        pytest.param(sample(END, rewind(replace_run(next=5)), position(END)), id="not handed out"),
        pytest.param(sample(END, rewind(replace_run(first=3)), position(END)), id="begun behind the target"),
        pytest.param(sample(END, rewind(replace_run(is_current=False)), position(END)), id="given up"),
        pytest.param(sample(END, rewind(ALL, replace_run(client_id="B")), position(END)), id="two consumers"),
        pytest.param(sample(END, rewind(ALL), position(END, first=7)), id="not consumed"),
        pytest.param(sample(END, rewind(ALL), position(END, client="B")), id="another has the queue"),
        pytest.param(
            sample(END, rewind(ALL), position(END), position(END, client="B")), id="two have the queue"
        ),
        pytest.param(sample(END, rewind(ALL, passed=OLD), position(END)), id="a late commit was stored"),
        pytest.param(sample(END, rewind(ALL, number=1), position(END)), id="a rewind of before the reset"),
        pytest.param(sample(END, None, position(END)), id="RocketMQ's broker"),
    ],
)
def test_less_is_no_proof(seen: Sample) -> None:
    watch = new_watch(rewind(ALL, number=1))
    for step in range(40):
        assert watch.add(11.0 + step / 2, seen) is not State.PROVEN


def test_a_rewind_to_another_target_is_another_reset() -> None:
    """Two resets overlap: what the second hands out does not prove the first."""
    watch = new_watch()
    other = Rewind(3, 2_000, OLD, 4, 4, END, END, END, None, [replace_run(first=4)])
    for step in range(40):
        assert watch.add(11.0 + step / 2, sample(END, other, position(END))) is not State.PROVEN


def test_a_queue_that_was_taken_over_again_between_two_samples_is_no_proof() -> None:
    watch = new_watch()
    watch.add(11.0, DONE)
    again = rewind(replace_run(is_current=False), replace_run(first=END))
    assert watch.add(11.5, sample(END, again, position(END))) is not State.PROVEN


def test_a_broker_that_did_not_answer_in_between_is_no_proof() -> None:
    watch = new_watch()
    watch.add(11.0, DONE)
    watch.add(11.5, replace(DONE, queues={QUEUE: QueueSample(None)}))
    assert watch.add(12.0, DONE) is not State.PROVEN
    assert watch.add(12.5, DONE) is State.PROVEN


def test_a_stored_offset_above_what_was_handed_out_is_a_loss_once_the_consumers_have_settled() -> None:
    watch = new_watch()
    late = sample(OLD, rewind(handed_out=0, passed=OLD), position(OLD))
    for second in range(12, 30):
        assert watch.add(float(second), late) is not State.LOST
    assert watch.add(30.0, late) is State.LOST
    assert watch.reason == f"{Finding.OVERTAKEN}: 0 of 12 messages"


def test_a_late_commit_that_a_later_one_repairs_is_no_loss() -> None:
    watch = new_watch()
    for second in range(12, 29):
        watch.add(float(second), sample(OLD, rewind(handed_out=0, passed=OLD), position(OLD)))
    repaired = sample(0, rewind(handed_out=0, passed=OLD), position(0))
    for second in range(29, 60):
        assert watch.add(float(second), repaired) is not State.LOST


def overtaken(**changes: object) -> Sample:
    """The stored offset is above what was handed out, after a late commit."""
    late = rewind(handed_out=4, passed=OLD)
    for name, value in changes.items():
        setattr(late, name, value)
    return sample(OLD, late, position(4, first=4))


def states_until(watch: OneQueue, seen: Sample, seconds: int) -> set[State]:
    return {watch.add(float(second), seen) for second in range(12, seconds)}


def test_commits_after_a_complete_redelivery_are_no_loss() -> None:
    """A late commit was repaired, and new messages move the stored offset on, which no rewind notes."""
    watch = new_watch()
    complete = sample(END + 5, rewind(ALL, handed_out=END, passed=OLD), position(END + 5))
    assert State.LOST not in states_until(watch, complete, 60)


def test_a_commit_above_what_was_handed_out_is_no_loss_if_pulls_may_be_unknown() -> None:
    """Consumers pull from slaves, or were in the redelivery when the rewind began."""
    seen = overtaken(notes_all_pulls=False)
    unheld = replace(seen, queues={QUEUE: replace(seen.queues[QUEUE], positions=(position(OLD),))})
    assert State.LOST not in states_until(new_watch(), unheld, 50)


def test_a_commit_above_what_was_handed_out_is_no_loss_after_the_broker_was_away() -> None:
    """Meanwhile its consumers may have pulled from its slave."""
    watch = new_watch()
    seen = overtaken()
    unheld = replace(seen, queues={QUEUE: replace(seen.queues[QUEUE], positions=(position(OLD),))})
    watch.add(11.0, unheld)
    watch.add(11.5, replace(unheld, queues={QUEUE: QueueSample(None)}))
    assert State.LOST not in states_until(watch, unheld, 50)


def test_a_consumer_in_the_classic_wait_may_still_commit_the_target() -> None:
    """The process was suspended for 25 s, and then got the reset."""
    watch = new_watch()
    for second in range(25):
        watch.add(float(second), sample(OLD, None, position(OLD), awaited=0))
    waiting = sample(OLD, None, replace(position(OLD), dropped=True), awaited=0)
    assert {watch.add(float(second), waiting) for second in range(25, 36)} == {State.ACCEPTED}
    watch.add(36.0, DONE)
    assert watch.add(36.5, DONE) is State.PROVEN


def test_R6b_a_classic_reset_that_no_consumer_commits_is_lost() -> None:
    watch = new_watch()
    waiting = sample(OLD, None, position(OLD), awaited=0)
    for second in range(30):
        assert watch.add(float(second), waiting) is not State.LOST
    assert watch.add(30.0, waiting) is State.LOST
    assert watch.races == ("R6b", "R7b", "S4")
