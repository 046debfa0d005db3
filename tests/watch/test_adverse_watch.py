"""Lost resets that look kept, and kept ones that look lost (docs/watched_reset.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.verdict.states import State
from tests.watch.one_queue import QUEUE, OneQueue

OLD, TARGET, END = 100, 0, 1_000


def at(low: int, *, client: str = "A", dropped: bool = False) -> Position:
    """A consumer that works on the message at ``low``."""
    return Position(client, low, low, dropped, last_consume=1_000)


def idle(offset: int, *, client: str = "A", last_consume: int = 99_000) -> Position:
    return Position(client, offset, None, dropped=False, last_consume=last_consume)


def sample(stored: int | None, *positions: Position, clients: str = "A", consumed: float = 0.0) -> Sample:
    seen = QueueSample(stored, END, positions)
    return Sample(
        0.0,
        {QUEUE: seen},
        frozenset(clients),
        consumed=dict.fromkeys(sorted(clients), consumed),
        has_silent_broker=stored is None,
    )


def rewind(*before: Position, clients: str = "A") -> OneQueue:
    seen = QueueSample(OLD, OLD, before or (idle(OLD, last_consume=1_000),))
    return OneQueue(TARGET, seen, frozenset(clients))


def play(watch: OneQueue, seconds: Sequence[float], seen: Sample) -> State:
    for second in seconds:
        watch.add(float(second), seen)
    return watch.state


def test_a_redelivery_that_begins_behind_the_target_is_not_proven() -> None:
    """A late commit of 80 replaced the target, so the messages before it never come again."""
    watch = rewind()
    play(watch, [1.0], sample(OLD, at(OLD, dropped=True)))
    play(watch, [10.0], sample(0))
    play(watch, [10.5], sample(80))
    for step in range(60):
        low = 80 + step // 3
        assert play(watch, [11.0 + step], sample(low, at(low))) is not State.PROVEN
    watch.end(120.0)
    assert watch.state is State.UNKNOWN
    assert watch.reason == (
        "the redelivery was seen to 99 of 100 with a gap, in which a consumer may have left messages out; it"
        " was not counted, because broker-a does not tell how many messages the group fetched: preview again"
        " when the group has been idle for a minute"
    )


def test_a_redelivery_that_was_fast_at_its_beginning_is_proven() -> None:
    watch = rewind()
    play(watch, [10.0], sample(0))
    for step in range(60):
        low = min(5 + 10 * step, 99)
        play(watch, [10.5 + step / 2], sample(0 if step < 9 else low, at(low)))
    play(watch, range(41, 60), sample(99, at(99)))
    assert watch.state is State.PROVEN


def test_a_late_commit_right_behind_the_target_is_taken_for_no_fast_beginning() -> None:
    watch = rewind()
    play(watch, [10.0], sample(0))
    for step in range(100):
        low = min(1 + step, 99)
        assert play(watch, [10.5 + step / 2], sample(low, at(low))) is not State.PROVEN


def test_a_consumer_that_takes_the_queue_over_further_on_leaves_messages_out() -> None:
    watch = rewind(clients="AB")
    for second in range(11, 20):
        play(watch, [second], sample(0, at(second - 11), clients="AB"))
    for second in range(20, 80):
        low = 60 + (second - 20) // 2
        seen = sample(low, at(low, client="B"), clients="AB")
        assert play(watch, [second], seen) is not State.PROVEN


def test_a_take_over_further_on_than_the_first_consumer_can_have_come_leaves_messages_out() -> None:
    """A consumed 2 messages a second, so the messages 20 and 21 never came."""
    watch = rewind(clients="AB")
    for second in range(11, 21):
        play(watch, [second], sample(0, at(2 * (second - 11)), clients="AB"))
    for second in range(21, 120):
        low = min(22 + second - 21, 99)
        assert play(watch, [second], sample(low, at(low, client="B"), clients="AB")) is not State.PROVEN


def test_a_take_over_during_a_broker_s_silence_leaves_messages_out_if_it_is_too_far_on() -> None:
    """In 15 s, A can have come from 8 to 38; B begins at 60."""
    watch = rewind(clients="AB")
    for second in range(11, 16):
        play(watch, [second], sample(0, at(2 * (second - 11)), clients="AB"))
    play(watch, range(16, 30), sample(None, clients="AB"))
    for second in range(30, 120):
        low = min(60 + (second - 30) // 2, 99)
        assert play(watch, [second], sample(low, at(low, client="B"), clients="AB")) is not State.PROVEN


def test_a_consumer_that_takes_the_queue_over_where_it_was_leaves_nothing_out() -> None:
    watch = rewind(clients="AB")
    for second in range(11, 20):
        play(watch, [second], sample(0, at(second - 11), clients="AB"))
    for second in range(20, 70):
        low = 5 + second - 20
        play(watch, [second], sample(low, at(low, client="B"), clients="AB"))
    assert watch.state is State.PROVEN


def test_a_consumer_that_moves_up_to_a_jumped_offset_leaves_messages_out() -> None:
    watch = rewind()
    for second in range(11, 20):
        play(watch, [second], sample(0, at(second - 11)))
    play(watch, [20.0, 22.0], sample(60, at(9)))
    for second in range(24, 90):
        low = 60 + (second - 24) // 2
        assert play(watch, [second], sample(low, at(low))) is not State.PROVEN


def test_a_consumer_that_consumes_everything_before_it_repairs_a_jumped_offset_has_lost_nothing() -> None:
    watch = rewind()
    for step in range(10):
        play(watch, [11.0 + step / 2], sample(0 if step < 5 else OLD, at(10 * step)))
    play(watch, [16.0], sample(OLD, at(OLD)))
    assert play(watch, range(17, 120), sample(110, at(110))) is State.REDELIVERING
    watch.end(120.0)
    assert watch.state is State.UNKNOWN


def test_a_consumer_below_the_target_was_not_moved_by_the_reset() -> None:
    """The consumers had not stored what they consumed, and another begins at the stored offset."""
    watch = OneQueue(70, QueueSample(50, END, (at(90),)), frozenset("AB"))
    for second in range(1, 90):
        low = 50 + second // 2
        seen = sample(low, at(low, client="B"), clients="AB")
        assert play(watch, [second], seen) is not State.PROVEN


def hand_over(gap: Sequence[Sample], low: int) -> State:
    """A redelivers two messages a second until 20 s, and goes on at ``low`` after the samples of the gap."""
    watch = rewind(clients="AB")
    for step in range(19):
        play(watch, [11.0 + step / 2], sample(0, at(step), clients="AB"))
    for number, seen in enumerate(gap, 1):
        play(watch, [20.0 + number / 2], seen)
    for step in range(160):
        now = min(low + step, 99)
        seen = sample(now, at(now), clients="AB")
        play(watch, [20.5 + len(gap) / 2 + step / 2], seen)
    return watch.state


def test_a_consumer_that_takes_its_queue_again_further_on_leaves_messages_out() -> None:
    """It held the message at 18, and takes the queue again at a late commit of 28."""
    free, mute = sample(28, clients="AB"), replace(sample(28, clients="AB"), is_complete=False)
    assert hand_over([free] * 4, 28) is not State.PROVEN
    assert hand_over([mute] * 4, 28) is not State.PROVEN
    assert hand_over([mute] * 4, 18) is State.PROVEN
    assert hand_over([sample(90, idle(90), clients="AB")] * 4, 90) is not State.PROVEN


def test_samples_that_are_far_apart_may_miss_that_a_consumer_left_messages_out() -> None:
    watch = rewind(clients="AB")
    for second in range(11, 31):
        play(watch, [second], sample(0, at(second - 11), clients="AB"))
    for second in range(36, 140):
        low = min(second + 10, 99)
        assert play(watch, [second], sample(low, at(low), clients="AB")) is not State.PROVEN


def test_a_message_of_a_slow_consumer_shows_no_speed() -> None:
    """A consumed a message in 3 s, so B, which begins two messages further on, leaves one out."""
    watch = rewind(clients="AB")
    for step in range(60):
        play(watch, [11.0 + step / 2], sample(0, at(step // 6), clients="AB"))
    for step in range(60, 240):
        low = min(10 + step // 6, 99)
        assert (
            play(watch, [11.0 + step / 2], sample(11, at(low, client="B"), clients="AB")) is not State.PROVEN
        )


def test_a_skip_that_consumers_pass_by_themselves_is_not_proven() -> None:
    watch = OneQueue(105, QueueSample(OLD, END, (at(OLD),)), frozenset("A"))
    for second in range(1, 120):
        low = OLD + second
        seen = sample(low - low % 5, at(low), consumed=min(second, 70))
        assert play(watch, [second], seen) is not State.PROVEN
    watch.end(120.0)
    assert watch.state is State.UNKNOWN
    assert "instead of skipping" in watch.reason


def skip(seen: Sample, before: Position) -> State:
    watch = OneQueue(300, QueueSample(OLD, END, (before,)), frozenset("A"))
    play(watch, [1.0], sample(OLD, replace(before, dropped=True)))
    return play(watch, range(11, 70), seen)


def test_a_skip_of_more_than_was_consumed_is_proven() -> None:
    seen = sample(300, at(300), consumed=150.0)
    assert skip(seen, at(OLD)) is State.PROVEN
    # So many had been consumed in front of a message that a listener keeps.
    assert skip(seen, replace(at(OLD), done=60)) is not State.PROVEN
    assert skip(replace(seen, is_filtered=True), at(OLD)) is not State.PROVEN
    assert skip(replace(seen, consumed={}), at(OLD)) is not State.PROVEN
    assert skip(replace(seen, clients=frozenset("B"), consumed={"B": 0.0}), at(OLD)) is not State.PROVEN


@pytest.mark.parametrize(("unlisted", "state"), [(1, State.PROVEN), (2, State.STORED)])
def test_a_consumer_that_is_not_listed_twice_may_have_consumed_what_a_skip_leaves_out(
    unlisted: int, state: State
) -> None:
    """It may have left and come back with its client id, and then counts from 0."""
    watch = OneQueue(300, QueueSample(OLD, END, (at(OLD),)), frozenset("A"))
    play(watch, [second / 2 for second in range(20)], sample(OLD, at(OLD, dropped=True)))
    play(watch, [second / 2 for second in range(20, 40)], sample(300, at(300)))
    failed = replace(sample(300, clients=""), is_complete=False)
    play(watch, [second / 2 for second in range(40, 40 + unlisted)], failed)
    assert play(watch, [second / 2 for second in range(40 + unlisted, 160)], sample(300, at(300))) is state


def test_a_skip_that_a_late_commit_undoes_is_not_proven_when_consumers_come_to_the_target_again() -> None:
    watch = OneQueue(300, QueueSample(OLD, END, (at(OLD),)), frozenset("A"))
    play(watch, range(11, 30), sample(300, at(300)))
    play(watch, [30.0], sample(150, at(150)))
    assert play(watch, range(31, 120), sample(300, at(300), consumed=70.0)) is not State.PROVEN


def test_a_broker_that_was_restarted_and_does_not_know_the_consumers_yet_names_no_loss() -> None:
    """The consumer redelivered everything, and tells the broker of itself again after 30 s."""
    watch = rewind()
    play(watch, [0.5], sample(OLD, at(OLD, dropped=True)))
    play(watch, [1.0, 2.0, 3.0], sample(None, clients=""))
    play(watch, [10.0], sample(0, clients=""))
    assert play(watch, range(11, 37), sample(OLD, clients="")) is State.STORED
    play(watch, range(37, 90), sample(OLD, idle(OLD), consumed=120.0))
    watch.end(120.0)
    assert watch.state is State.UNKNOWN


def test_a_consumer_that_redelivered_while_the_broker_did_not_know_it_may_have_consumed_everything() -> None:
    watch = rewind(clients="AC")
    play(watch, [0.5], sample(OLD, at(OLD, dropped=True), clients="AC"))
    play(watch, [1.0, 2.0], sample(None, clients=""))
    play(watch, range(3, 33), sample(OLD, idle(OLD, client="C"), clients="C"))
    seen = sample(OLD, idle(OLD, client="C"), clients="AC")
    play(watch, range(33, 120), replace(seen, consumed={"A": 120.0, "C": 0.7}))
    watch.end(120.0)
    assert watch.state is State.UNKNOWN


def test_a_consumer_that_did_not_answer_and_then_left_may_have_consumed_everything() -> None:
    watch = rewind(clients="AB")
    play(watch, [0.5], sample(OLD, at(OLD, dropped=True), clients="AB"))
    mute = replace(sample(OLD, clients="AB"), is_complete=False, telling=frozenset("B"))
    play(watch, range(5, 30), mute)
    play(watch, range(30, 120), sample(OLD, idle(OLD, client="B"), clients="B"))
    watch.end(120.0)
    assert (watch.state, "has left" in watch.reason) == (State.UNKNOWN, True)


def test_rates_that_begin_after_a_kept_redelivery_name_no_loss() -> None:
    """At 76 s, they may cover the time from 16 s on. Before, a consumer did not answer for a while."""
    watch = rewind()
    play(watch, [0.5, 5.0], sample(OLD, at(OLD, dropped=True)))
    play(watch, [10.0], sample(0))
    play(watch, range(11, 30), sample(OLD, idle(OLD), consumed=120.0))
    play(watch, range(30, 61), replace(sample(OLD), is_complete=False))
    play(watch, range(61, 120), sample(OLD, idle(OLD), consumed=0.7))
    watch.end(120.0)
    assert watch.state is State.UNKNOWN


def test_a_consumer_that_is_killed_is_none_that_a_restarted_broker_does_not_know_yet() -> None:
    """The broker had missed a sample, and the list was empty until the next consumer joined (R8-KILL)."""
    watch = rewind()
    play(watch, [0.5], sample(OLD, at(OLD, dropped=True)))
    play(watch, [1.0], sample(None, clients=""))
    play(watch, [1.5, 2.0], sample(OLD, at(OLD, dropped=True)))
    play(watch, [4.0, 4.5], sample(OLD, clients=""))
    play(watch, range(5, 80), sample(OLD, idle(OLD, client="B"), clients="B"))
    assert watch.state is State.LOST


def test_a_consumer_that_a_restarted_broker_does_not_know_yet_has_not_given_its_queue_up() -> None:
    watch = rewind(at(20))
    play(watch, [1.0, 2.0], sample(None, clients=""))
    play(watch, range(3, 20), sample(OLD, clients=""))
    for second in range(20, 70):
        low = second
        assert play(watch, [second], sample(low, at(low))) is not State.PROVEN


def test_a_commit_of_a_consumer_that_did_not_answer_is_no_jump() -> None:
    watch = rewind(clients="AB")
    play(watch, [11.0], sample(0, at(0), clients="AB"))
    mute = replace(sample(OLD, at(3), clients="AB"), is_complete=False)
    play(watch, range(12, 20), mute)
    assert play(watch, [20.0], sample(OLD, idle(OLD, client="B"), clients="AB")) is not State.LOST


@pytest.mark.parametrize("target", [TARGET, 300])
def test_a_group_without_any_consumer_is_unknown_after_30_s(target: int) -> None:
    watch = OneQueue(target, QueueSample(OLD, END), frozenset())
    stored = sample(target, clients="")
    assert play(watch, range(30), stored) is State.STORED
    assert play(watch, [30.0], stored) is State.UNKNOWN
    assert watch.reason.startswith("no consumer is connected: the stored offset takes effect when")


@pytest.mark.parametrize("seen", [sample(TARGET), replace(sample(TARGET, clients=""), is_complete=False)])
def test_a_group_with_consumers_or_with_unknown_ones_is_watched_on(seen: Sample) -> None:
    watch = OneQueue(TARGET, QueueSample(OLD, END), frozenset())
    assert play(watch, range(60), seen) is State.STORED
