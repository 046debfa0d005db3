"""The checker, with histories that keep the laws and histories that break them on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.protocol.points import Point
from rewindmq.race.checker import JudgeFrom, Law, Verdict, judge, progress
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, History, Kind, Lab
from rewindmq.race.scenario.scenario import Loss

NO_NEW = "NO_NEW_MSG"
OLD = 10


class Story:
    """Builds a history step by step, one second each; a step is about queue 0 unless ``queue`` is given."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.at = 0.0
        self._stored: dict[int, int] = {}

    def add(self, process: str, kind: Kind, **details: Any) -> None:
        self.events.append(Event(self.at, process, kind, {"topic": "T", "group": "G", **details}))
        self.at += 1.0

    def _consumer(self, who: str, kind: Kind, offset: int, queue: int = 0, **details: Any) -> None:
        self.add(f"consumer-{who}", kind, broker_name="broker-a", queue_id=queue, offset=offset, **details)

    def sent(self, count: int, *, tags: Sequence[str] = ()) -> None:
        for offset in range(count):
            tag = tags[offset] if tags else ""
            self.add("producer", Lab.MESSAGE_SENT, broker_name="broker-a", queue_id=0, offset=offset, tag=tag)

    def pull(self, chain: int, offset: int, who: str = "A", queue: int = 0) -> None:
        self._consumer(who, Point.PULL_SENT, offset, queue, chain=chain)

    def answer(
        self, chain: int, following: int, status: str = "FOUND", who: str = "A", queue: int = 0, **more: Any
    ) -> None:
        self._consumer(who, Point.PULL_CALLBACK, following, queue, chain=chain, status=status, **more)

    def call(self, chain: int, *offsets: int, who: str = "A", queue: int = 0) -> None:
        self._consumer(who, Point.LISTENER_CALLED, offsets[0], queue, chain=chain, offsets=list(offsets))

    def finish(self, chain: int, *offsets: int, who: str = "A", queue: int = 0) -> None:
        self._consumer(who, Point.LISTENER_RETURNED, offsets[0], queue, chain=chain, offsets=list(offsets))

    def consume(self, chain: int, first: int, following: int, who: str = "A", queue: int = 0) -> None:
        """Pull, deliver and finish the messages from ``first`` to before ``following``."""
        self.pull(chain, first, who, queue)
        self.answer(chain, following, who=who, queue=queue)
        for offset in range(first, following):
            self.call(chain, offset, who=who, queue=queue)
            self.finish(chain, offset, who=who, queue=queue)

    def drop(self, chain: int, who: str = "A") -> None:
        self._consumer(who, Point.QUEUE_DROPPED, 0, chain=chain)

    def commit(self, offset: int, *, carrier: int = 15, queue: int = 0) -> None:
        before = self._stored.get(queue, -1)
        self._stored[queue] = offset
        self.add(
            "broker-a", Point.COMMIT_RECEIVED, queue_id=queue, offset=offset, stored=before, carrier=carrier
        )

    def reset_record(self, offset: int, queue: int = 0) -> None:
        self._stored[queue] = offset
        self.add("broker-a", Point.OFFSET_RESET, queue_id=queue, offset=offset)

    def ask(self, offset: int, mode: str = "fenced", queue: int = 0) -> None:
        self.add("admin", Lab.RESET_STARTED, mode=mode, broker_name="broker-a", queue_id=queue, offset=offset)

    def done(self, *offsets: int, mode: str = "fenced") -> None:
        targets = [["broker-a", queue, offset] for queue, offset in enumerate(offsets)]
        self.add("admin", Lab.RESET_ACKNOWLEDGED, mode=mode, targets=targets)

    def reset(self, offset: int, mode: str = "fenced") -> None:
        """Start and acknowledge a reset; the broker stores the target unless the reset is classic."""
        self.ask(offset, mode)
        if mode != "classic":
            self.reset_record(offset)
        self.done(offset, mode=mode)

    def judge(self, **options: Any) -> Verdict:
        return judge(self.events, **options)


def begun(mode: str = "fenced", target: int = 0, *, until: int = OLD) -> Story:
    """Begin a history: chain 1 has consumed ``until`` messages, its next pull is suspended, then a reset."""
    story = Story()
    story.sent(OLD)
    story.consume(1, 0, until)
    story.pull(1, until)
    story.commit(until)
    story.reset(target, mode)
    return story


def lost(verdict: Verdict) -> set[Loss]:
    return set(verdict.losses)


def laws(verdict: Verdict) -> list[Law]:
    return [violation.law for violation in verdict.violations]


# Histories that keep the laws.


def test_a_replay_with_commits_that_follow_it_breaks_no_law() -> None:
    story = begun()
    story.drop(1)
    for first in range(0, OLD, 2):
        story.consume(2, first, first + 2)
        story.commit(first + 2)
    story.pull(2, OLD)
    assert story.judge(is_at_rest=True) == Verdict(frozenset(), ())


def test_a_classic_reset_may_store_the_old_offset_until_it_is_applied() -> None:
    story = begun("classic")
    story.commit(OLD)
    story.drop(1)
    story.commit(OLD)
    story.commit(0)
    story.consume(2, 0, OLD)
    story.commit(OLD)
    assert lost(story.judge(is_at_rest=True)) == set()
    assert lost(story.judge(judge_from=JudgeFrom.ACKNOWLEDGED)) == {Loss.L0}


def test_messages_that_the_filter_skips_count_as_finished() -> None:
    story = begun()
    story.drop(1)
    story.pull(2, 0)
    story.answer(2, 4, "NO_MATCHED_MSG")
    story.pull(2, 4)
    story.answer(2, OLD, offsets=[5, 8])
    story.call(2, 5, 8)
    story.commit(5)
    story.finish(2, 5, 8)
    story.pull(2, OLD)
    story.answer(2, OLD, NO_NEW)
    story.commit(OLD)
    assert lost(story.judge(is_at_rest=True)) == set()


def test_messages_with_a_tag_that_no_consumer_gets_count_as_filtered() -> None:
    tags = ["a", "b"] * 3
    story = Story()
    story.sent(6, tags=tags)
    story.commit(6)
    story.reset(0)
    story.pull(1, 0)
    story.answer(1, 6)
    for offset in (0, 2, 4):
        story.call(1, offset)
        story.finish(1, offset)
    story.commit(6)
    assert lost(story.judge(is_at_rest=True)) == set()
    # If all messages had the same tag, those between would be missing.
    plain = [event for event in story.events if event.kind is not Lab.MESSAGE_SENT]
    assert lost(judge(plain)) == {Loss.L1}


def test_a_second_consumer_and_a_restarted_one_continue_where_the_first_stopped() -> None:
    story = begun()
    story.drop(1)
    story.consume(2, 0, 4)
    story.pull(2, 4)
    story.commit(4)
    story.add("consumer-A", Lab.PROCESS_KILLED)
    story.add("consumer-A", Lab.PROCESS_STARTED)
    story.consume(1, 4, 6)
    story.commit(6)
    story.drop(1)
    story.consume(1, 6, OLD, who="B")
    story.commit(OLD)
    assert lost(story.judge(is_at_rest=True)) == set()


def test_a_correction_in_the_response_to_a_fresh_pull_may_be_stored() -> None:
    story = begun(target=0)
    story.drop(1)
    story.pull(2, 0)
    story.answer(2, 3, "OFFSET_ILLEGAL")
    story.commit(3)
    story.consume(3, 3, OLD)
    story.commit(OLD)
    assert lost(story.judge(is_at_rest=True)) == set()


def test_a_correction_may_lie_before_the_target() -> None:
    story = begun(target=8, until=5)
    story.drop(1)
    story.pull(2, 8)
    story.answer(2, 3, "OFFSET_ILLEGAL")
    story.commit(3)
    assert lost(story.judge()) == set()
    story.commit(4)
    assert lost(story.judge()) == {Loss.L2}


@pytest.mark.parametrize(("first", "last"), [(5, 2), (2, 5)])
def test_two_resets_at_once_are_told_apart_by_their_targets(first: int, last: int) -> None:
    story = Story()
    story.sent(OLD)
    story.pull(1, OLD)
    story.commit(OLD)
    story.ask(2)
    story.ask(5)
    for target in (first, last):
        story.reset_record(target)
        story.done(target)
    # The reset that started last is judged, whichever was acknowledged last.
    assert lost(story.judge()) == ({Loss.L2} if last == 2 else set())
    assert lost(story.judge(reset=0)) == ({Loss.L2} if last == 5 else set())


def test_a_crash_after_the_acknowledgement_loses_nothing_that_is_stored() -> None:
    story = begun()
    story.add("consumer-A", Lab.PROCESS_KILLED)
    assert lost(story.judge(is_at_rest=True)) == set()


def test_the_earlier_of_two_resets_may_lose_to_the_later() -> None:
    story = begun("classic", 2)
    story.ask(5, "classic")
    story.done(5, mode="classic")
    story.commit(2)
    story.commit(5)
    story.drop(1)
    story.consume(2, 5, OLD)
    assert lost(story.judge(is_at_rest=True)) == set()
    assert lost(story.judge(reset=0)) == {Loss.L2}
    with pytest.raises(RaceError, match="there is no reset 2; 2 were acknowledged"):
        story.judge(reset=2)


def test_without_an_acknowledged_reset_there_is_nothing_to_judge() -> None:
    story = Story()
    story.ask(0)
    story.add("admin", Lab.RESET_REFUSED, mode="fenced", code=206, remark="offline")
    story.commit(5)
    assert story.judge() == Verdict(frozenset(), ())
    assert progress(story.events) == []


def test_the_effect_of_an_unanswered_reset_does_not_count_against_the_one_before() -> None:
    story = begun()
    story.ask(7)
    story.reset_record(7)
    assert lost(story.judge()) == set()
    # A refused reset has no effect.
    refused = begun()
    refused.ask(7)
    refused.add("admin", Lab.RESET_REFUSED, mode="fenced", code=1, remark="no")
    refused.commit(7)
    assert lost(refused.judge()) == {Loss.L2}


def test_a_later_acknowledgement_does_not_belong_to_an_abandoned_reset() -> None:
    story = Story()
    story.sent(OLD)
    story.consume(1, 0, OLD)
    story.pull(1, OLD)
    story.commit(OLD)
    story.ask(0)
    # The connection was lost with the broker, so no response will ever arrive.
    story.add("admin", Lab.RESET_REFUSED, mode="fenced", code=None, remark="the connection was lost")
    story.commit(OLD)
    story.reset(0)
    story.drop(1)
    story.consume(2, 0, OLD)
    story.commit(OLD)
    assert story.judge(is_at_rest=True) == Verdict(frozenset(), ())


def test_a_queue_moves_between_consumers_within_a_rebalance() -> None:
    def overlap(seconds: float) -> Story:
        story = begun()
        story.drop(1)
        story.consume(2, 0, OLD)
        story.pull(2, OLD)
        began = story.at
        story.pull(1, OLD, who="B")
        while story.at < began + seconds:
            for who, chain in (("A", 2), ("B", 1)):
                story.answer(chain, OLD, NO_NEW, who=who)
                story.pull(chain, OLD, who=who)
        return story

    assert lost(overlap(20).judge()) == set()
    verdict = overlap(40).judge()
    assert lost(verdict) == {Loss.L3}
    assert "consumer-A and consumer-B pull it alternately" in verdict.violations[0].text or (
        "consumer-B and consumer-A pull it alternately" in verdict.violations[0].text
    )
    assert lost(overlap(20).judge(handover_seconds=5)) == {Loss.L3}


# Histories that break a law.


def test_E05_a_stored_offset_ahead_of_the_replay_is_L1() -> None:
    story = begun("classic")
    story.drop(1)
    story.commit(0)
    story.pull(2, 0)
    story.answer(1, OLD, NO_NEW)
    story.answer(2, OLD)
    story.call(2, 0)
    story.finish(2, 0)
    index = len(story.events)
    story.commit(OLD, carrier=11)
    for offset in range(1, OLD):
        story.call(2, offset)
        story.finish(2, offset)
    verdict = story.judge(is_at_rest=True)
    assert lost(verdict) == {Loss.L1}
    (violation,) = verdict.violations
    assert (violation.law, violation.index, violation.at) == (Law.STORED, index, float(index))
    assert violation.text == (
        "queue 0 of broker-a: 10 was stored (by a pull) after the reset to 0, and only the messages before 1"
        " had been delivered again and finished"
    )


def test_E08_a_restart_at_a_wrong_stored_offset_is_L2_too() -> None:
    story = begun("classic")
    story.drop(1)
    story.commit(0)
    story.consume(2, 0, 4)
    story.commit(OLD)
    story.add("consumer-A", Lab.PROCESS_KILLED)
    story.add("consumer-A", Lab.PROCESS_STARTED)
    story.pull(1, OLD)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L1, Loss.L2}
    assert "messages 4 to 9 were not delivered again, and no consumer will pull them" in (
        verdict.violations[1].text
    )


def test_E17_a_reset_that_was_never_applied_is_L2() -> None:
    story = begun("classic")
    story.add("consumer-A", Lab.PROCESS_KILLED)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L2}
    assert set(laws(verdict)) == {Law.STORED, Law.REDELIVERED}
    # No offset was stored, so the only step to mark is the acknowledgement.
    assert story.events[verdict.violations[0].index].kind is Lab.RESET_ACKNOWLEDGED
    assert verdict.violations[0].text == (
        "queue 0 of broker-a: 10 stayed stored after the reset to 0, which was never applied"
    )


def test_E11_of_a_reset_never_applied_the_first_step_of_the_queue_s_consumer_is_marked() -> None:
    story = begun("classic")
    # This commit by the timer of the notified consumer is harmless.
    story.commit(OLD)
    story.add("consumer-A", Lab.PROCESS_KILLED)
    story.pull(1, OLD, who="B")
    first = len(story.events)
    story.commit(OLD, carrier=11)
    story.commit(OLD)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L2}
    assert verdict.violations[0].index == first
    assert verdict.violations[0].text == (
        "queue 0 of broker-a: 10 was stored (by a pull) after the reset to 0, which was never applied"
    )


def test_R6_of_a_reset_without_notifications_the_next_commit_is_marked() -> None:
    story = begun("classic")
    first = len(story.events)
    story.commit(OLD)
    story.commit(OLD)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L2}
    assert verdict.violations[0].index == first


def test_R6_a_new_owner_that_commits_the_old_offset_is_L2() -> None:
    story = begun("classic")
    story.drop(1)
    story.pull(1, OLD, who="B")
    story.commit(0)
    story.commit(OLD)
    assert lost(story.judge()) == {Loss.L2}


def test_messages_delivered_before_a_reset_was_applied_must_be_delivered_again() -> None:
    story = begun("classic", 4, until=4)
    story.answer(1, 6)
    story.call(1, 4, 5)
    story.finish(1, 4, 5)
    story.drop(1)
    story.commit(4)
    story.consume(2, 6, 8)
    story.commit(8)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L2}
    assert laws(verdict) == [Law.STORED, Law.REDELIVERED]
    assert "messages 4 to 5 were not delivered again" in verdict.violations[1].text


def test_R6_a_chain_that_continues_does_not_pull_its_earlier_messages_again() -> None:
    story = begun()
    story.answer(1, OLD, NO_NEW)
    story.pull(1, OLD)
    story.commit(OLD)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L2}
    assert laws(verdict) == [Law.STORED, Law.REDELIVERED]
    assert "messages 0 to 9 were not delivered again" in verdict.violations[1].text


def test_a_chain_that_stopped_pulling_is_not_a_second_chain() -> None:
    story = begun()
    story.drop(1)
    story.pull(2, 0)
    story.consume(3, 0, 5)
    story.consume(3, 5, OLD)
    assert lost(story.judge()) == set()
    story.pull(2, 0)
    assert lost(story.judge()) == {Loss.L3}


def test_E12_two_chains_in_one_process_are_L3() -> None:
    story = begun()
    story.consume(2, 0, OLD)
    story.pull(2, OLD)
    story.answer(1, OLD, NO_NEW)
    index = len(story.events)
    story.pull(1, OLD)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L3}
    assert (laws(verdict), verdict.violations[0].index) == ([Law.ONE_CHAIN], index)
    assert "two chains of consumer-A pull it alternately" in verdict.violations[0].text


def test_a_chain_that_was_dropped_or_only_got_a_response_is_not_a_second_chain() -> None:
    story = begun()
    story.drop(1)
    story.consume(2, 0, OLD)
    story.answer(1, OLD, NO_NEW)
    story.pull(2, OLD)
    assert lost(story.judge()) == set()


def test_E10_a_commit_below_a_forward_reset_is_L2() -> None:
    story = begun("classic", 8, until=5)
    story.drop(1)
    story.commit(8)
    story.consume(2, 8, OLD)
    story.commit(6)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L2}
    assert "which lies before it" in verdict.violations[0].text


def test_a_forward_reset_that_consumption_passed_by_itself_breaks_no_law() -> None:
    story = begun("classic", 8, until=5)
    story.answer(1, OLD)
    for offset in range(5, OLD):
        story.call(1, offset)
        story.finish(1, offset)
    story.commit(OLD)
    assert lost(story.judge(is_at_rest=True)) == set()


def test_E21_a_wrong_stored_offset_that_is_corrected_is_L0() -> None:
    story = begun("server")
    story.commit(OLD)
    story.drop(1)
    story.commit(0)
    story.consume(2, 0, OLD)
    story.commit(OLD)
    verdict = story.judge(is_at_rest=True)
    assert lost(verdict) == {Loss.L0}
    assert verdict.violations[0].text.endswith("; a later commit repaired it")


def test_a_replay_that_catches_up_does_not_repair_a_wrong_stored_offset() -> None:
    story = begun("server")
    story.drop(1)
    story.pull(2, 0)
    story.commit(OLD)
    story.answer(2, OLD)
    for offset in range(OLD):
        story.call(2, offset)
        story.finish(2, offset)
    story.commit(OLD)
    assert lost(story.judge(is_at_rest=True)) == {Loss.L1}


def test_E25_a_consumer_that_has_not_learned_of_the_reset_yet_is_L0() -> None:
    story = begun("server")
    assert lost(story.judge(is_at_rest=True)) == {Loss.L0}
    assert lost(story.judge()) == set()


def test_a_group_without_consumers_that_handle_resets_is_L0() -> None:
    story = Story()
    story.sent(OLD)
    story.commit(OLD)
    story.reset(0, "classic")
    story.commit(OLD)
    assert lost(story.judge(is_at_rest=True)) == {Loss.L0}


def test_messages_that_the_listener_has_not_finished_do_not_count() -> None:
    story = begun()
    story.drop(1)
    story.pull(2, 0)
    story.answer(2, 3)
    story.call(2, 0, 1, 2)
    story.commit(3)
    assert lost(story.judge()) == {Loss.L1}


def test_messages_of_a_pull_from_before_the_reset_do_not_count() -> None:
    story = Story()
    story.sent(OLD)
    story.pull(1, 0)
    story.answer(1, 4)
    story.call(1, 0)
    story.reset(0)
    story.call(1, 1)
    story.finish(1, 0, 1)
    story.pull(1, 0)
    story.commit(2)
    verdict = story.judge()
    assert laws(verdict)[0] is Law.STORED
    assert "no message had been delivered again" in verdict.violations[0].text


def test_a_correction_in_the_response_to_a_stale_pull_may_not_be_stored() -> None:
    story = begun("classic")
    story.drop(1)
    story.commit(0)
    story.consume(2, 0, 1)
    story.answer(1, 7, "OFFSET_ILLEGAL")
    story.commit(7)
    story.drop(2)
    story.pull(3, 7)
    assert lost(story.judge()) == {Loss.L1, Loss.L2}


def test_a_broker_that_loses_an_offset_is_detected_by_its_responses() -> None:
    for seen in ("query", "before", "administrator"):
        story = begun()
        story.add("broker-a", Lab.PROCESS_KILLED)
        story.add("broker-a", Lab.PROCESS_STARTED)
        if seen == "query":
            story.add("broker-a", Point.OFFSET_QUERIED, queue_id=0, offset=OLD)
        elif seen == "before":
            story._stored[0] = OLD
            story.commit(0)
        else:
            story.add("admin", Lab.STORED_OFFSET, broker_name="broker-a", queue_id=0, offset=OLD)
        verdict = story.judge()
        assert laws(verdict)[0] is Law.STORED, seen
        assert "observed" in verdict.violations[0].text


def test_an_administrator_s_late_query_does_not_override_the_broker_s_own_events() -> None:
    story = begun()
    story.add("admin", Lab.STORED_OFFSET, broker_name="broker-a", queue_id=0, offset=OLD)
    assert lost(story.judge()) == set()


def test_queues_are_judged_separately_and_other_groups_are_ignored() -> None:
    story = Story()
    for queue in (0, 1):
        story.consume(queue + 1, 0, OLD, queue=queue)
        story.commit(OLD, queue=queue)
    story.ask(0)
    for queue in (0, 1):
        story.reset_record(0, queue=queue)
    story.done(0, 0)
    story.consume(3, 0, OLD, queue=0)
    story.commit(OLD, queue=1)
    story.events.append(
        Event(
            story.at,
            "broker-a",
            Point.COMMIT_RECEIVED,
            {"topic": "T", "group": "other", "queue_id": 0, "offset": 99, "stored": 1, "carrier": 15},
        )
    )
    verdict = story.judge()
    assert all("queue 1 of broker-a" in violation.text for violation in verdict.violations)
    assert lost(verdict) == {Loss.L2}


def test_an_event_that_lacks_its_details_is_named() -> None:
    story = begun()
    story.events.append(Event(story.at, "consumer-A", Point.PULL_SENT, {"group": "G"}))
    with pytest.raises(RaceError, match=rf"event {len(story.events) - 1} \(client.pull_sent\) lacks"):
        story.judge()


# From frames alone.


class Frames(Story):
    """Builds a history of frames only, as of a client and a broker that record no events."""

    def frame(self, kind: Lab, source: str, target: str, code: int, form: str, **more: Any) -> None:
        response = {"response_code": more.pop("response_code")} if "response_code" in more else {}
        fields = {"consumerGroup": "G", "topic": "T", "queueId": 0, **more}
        process = source if kind is Lab.FRAME_SENT else target
        details = {"id": "1", "source": source, "target": target, "code": code, "form": form}
        self.add(process, kind, **details, fields=fields, **response)

    def request(self, code: int, form: str = "request", **fields: Any) -> None:
        for kind in (Lab.FRAME_SENT, Lab.FRAME_ARRIVED):
            self.frame(kind, "consumer-A", "broker-a", code, form, **fields)

    def response(self, code: int, response_code: int = 0, **fields: Any) -> None:
        for kind in (Lab.FRAME_SENT, Lab.FRAME_ARRIVED):
            self.frame(
                kind, "broker-a", "consumer-A", code, "response", response_code=response_code, **fields
            )

    def pull_frames(self, first: int, following: int, commit: int = 0) -> None:
        asked: dict[str, Any] = {"queueOffset": first, "commitOffset": commit, "sysFlag": 2 | (commit > 0)}
        self.request(11, **asked)
        offsets = list(range(first, following))
        self.response(11, 0 if offsets else 19, nextBeginOffset=following, offsets=offsets, **asked)


def reset_of_strangers() -> Frames:
    story = Frames()
    story.sent(OLD)
    story.pull_frames(0, OLD)
    asked: dict[str, Any] = {"queueOffset": OLD, "commitOffset": OLD, "sysFlag": 3}
    story.request(11, **asked)
    story.ask(0, "classic")
    story.done(0, mode="classic")
    story.request(15, "oneway", commitOffset=0)
    story.request(14)
    story.response(14, offset=0)
    return story


def test_frames_alone_show_a_reset_kept() -> None:
    story = reset_of_strangers()
    for first in range(0, OLD, 5):
        story.pull_frames(first, first + 5, commit=first)
    story.pull_frames(OLD, OLD, commit=OLD)
    assert lost(story.judge(is_at_rest=True)) == set()


def test_frames_alone_show_a_wrong_stored_offset() -> None:
    story = reset_of_strangers()
    story.pull_frames(0, 5)
    story.response(11, 19, nextBeginOffset=OLD, offsets=[], queueOffset=OLD, commitOffset=OLD, sysFlag=3)
    story.pull_frames(5, 7, commit=OLD)
    verdict = story.judge()
    assert lost(verdict) == {Loss.L1}
    assert "only the messages before 5 had been delivered again" in verdict.violations[0].text


def test_frames_alone_show_that_an_offset_moved_response_ends_a_chain() -> None:
    story = reset_of_strangers()
    # The pull was suspended since before the reset; the next chain begins at the offset in its response.
    story.response(11, 21, nextBeginOffset=0, offsets=[], queueOffset=OLD, commitOffset=OLD, sysFlag=3)
    story.pull_frames(0, 5)
    story.pull_frames(5, OLD, commit=5)
    assert lost(story.judge()) == set()


def test_frames_alone_do_not_take_a_pull_sent_again_for_a_second_chain() -> None:
    story = reset_of_strangers()
    story.response(11, 21, nextBeginOffset=0, offsets=[], queueOffset=OLD, commitOffset=OLD, sysFlag=3)
    story.pull_frames(0, OLD)
    asked: dict[str, Any] = {"queueOffset": OLD, "commitOffset": 0, "sysFlag": 2}
    for lost_by in ("broker", "proxy", "refusal", "broker"):
        story.request(11, **asked)
        if lost_by == "refusal":
            story.response(11, 24, **asked)
        elif lost_by == "broker":
            story.add("broker-a", Lab.PROCESS_KILLED)
            story.add("broker-a", Lab.PROCESS_STARTED)
        else:
            story.frame(Lab.FRAME_DROPPED, "consumer-A", "broker-a", 11, "request", reason="gone", **asked)
    for _ in range(3):
        story.pull_frames(OLD, OLD)
    assert lost(story.judge()) == set()


def test_frames_alone_show_two_chains() -> None:
    story = reset_of_strangers()
    story.pull_frames(0, OLD)
    story.request(11, queueOffset=OLD, commitOffset=0, sysFlag=2)
    # The chain from before the reset gets a response, and pulls again.
    story.response(11, 19, nextBeginOffset=OLD, offsets=[], queueOffset=OLD, commitOffset=0, sysFlag=2)
    story.request(11, queueOffset=OLD, commitOffset=0, sysFlag=2)
    assert lost(story.judge()) == {Loss.L3}


def test_a_refused_commit_in_frames_is_not_stored() -> None:
    story = reset_of_strangers()
    story.pull_frames(0, 5)
    story.request(15, commitOffset=OLD)
    story.response(15, 190_001, commitOffset=OLD, offset=0)
    assert lost(story.judge()) == set()
    story.request(15, commitOffset=OLD)
    story.response(15, 0, commitOffset=OLD)
    assert lost(story.judge()) == {Loss.L1}


def test_frames_of_processes_that_record_their_own_events_are_ignored() -> None:
    story = reset_of_strangers()
    story.pull_frames(0, 5, commit=OLD)
    assert lost(story.judge()) == {Loss.L1}
    story.add("broker-a", Point.PULL_SUSPENDED, queue_id=0, offset=3)
    assert lost(story.judge()) == set()


# Progress.


def test_progress_lists_the_changes_of_stored_offset_and_redelivery() -> None:
    story = begun()
    story.drop(1)
    story.consume(2, 0, 2)
    story.commit(5)
    (queue,) = progress(story.events)
    assert (queue.broker_name, queue.queue_id, queue.target, queue.end) == ("broker-a", 0, 0, OLD)
    values = [(moment.stored, moment.finished_until) for moment in queue.moments]
    assert values == [(10, None), (0, 0), (0, 1), (0, 2), (5, 2)]
    assert story.events[queue.moments[-1].event_index].kind is Point.COMMIT_RECEIVED


# Random steps of a consumer that keeps the laws, with one commit that breaks them.


class Ideal:
    """A consumer that keeps the laws; its steps are random."""

    def __init__(self, target: int) -> None:
        self.story = begun(target=target)
        self.story.drop(1)
        self.chain = 2
        self.position = target
        self.cached: list[int] = []
        self.running: list[int] = []
        self.target = target
        self.finished: set[int] = set()
        self.story.pull(2, target)

    @property
    def safe(self) -> int:
        offset = self.target
        while offset in self.finished:
            offset += 1
        return offset

    def step(self, choice: int) -> None:
        story = self.story
        if choice == 0:
            following = min(self.position + 3, OLD)
            status = "FOUND" if following > self.position else NO_NEW
            story.answer(self.chain, following, status)
            self.cached += range(self.position, following)
            self.position = following
            story.pull(self.chain, following)
        elif choice == 1 and self.cached:
            self.running.append(self.cached.pop(0))
            story.call(self.chain, self.running[-1])
        elif choice == 2 and self.running:
            offset = self.running.pop()
            self.finished.add(offset)
            story.finish(self.chain, offset)
        elif choice == 3:
            story.commit(self.safe)
        elif choice == 4:
            # The queue is dropped, and taken over at the stored offset by the same process or another.
            story.commit(self.safe)
            story.drop(self.chain)
            self.chain += 1
            self.position = self.safe
            self.cached, self.running = [], []
            story.pull(self.chain, self.position)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    target=st.integers(0, OLD - 1), steps=st.lists(st.integers(0, 4), max_size=40), stale=st.integers(0, 40)
)
def test_a_single_commit_ahead_of_the_replay_breaks_a_law(target: int, steps: list[int], stale: int) -> None:
    ideal = Ideal(target)
    bad = None
    for number, choice in enumerate(steps):
        ideal.step(choice)
        if number == stale and ideal.safe < OLD:
            bad = (len(ideal.story.events), OLD)
    events = ideal.story.events
    assert judge(events).violations == ()
    if bad is not None:
        index, offset = bad
        details = {**events[-1].details, "queue_id": 0, "offset": offset, "stored": -1, "carrier": 15}
        event = Event(index - 0.5, "broker-a", Point.COMMIT_RECEIVED, details)
        wrong = History([*events[:index], event, *events[index:]])
        verdict = judge(wrong)
        assert [v.index for v in verdict.violations if v.law is Law.STORED] == [index]
