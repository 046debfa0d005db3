"""The scenarios E01 to E28 of docs/spec/scenarios.md, with their numbers."""

from __future__ import annotations

from collections import Counter

import pytest

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import Event, History, Kind, Lab
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario import steps
from rewindmq.race.scenario.catalogue import SCENARIOS
from rewindmq.race.stage.stage import TOPIC, ListenerPlan, Stage
from tests.race.stages import simulate

A = "consumer-A"
RELEASES_4 = (Profile.V42, Profile.V49)
EIGHT_THREADS = {"consume_thread_max": 8}


class Timeline:
    """A history whose time 0 is when a consumer begins to handle the reset, or when the reset starts."""

    def __init__(self, history: History, *, zero: Kind = Point.SUSPENDED) -> None:
        self.history = history
        self.zero = history.of(zero)[0].at

    def at(self, event: Event) -> float:
        return round(event.at - self.zero, 1)

    def since(self, kind: Kind, **wanted: object) -> list[tuple[float, Event]]:
        return [(self.at(e), e) for e in self.history.of(kind, **wanted) if e.at >= self.zero]

    def stored(self, queue: int = 0) -> list[tuple[float, int]]:
        """The times at which the stored offset changed, with the new offsets."""
        changes: list[tuple[float, int]] = []
        latest = -1
        for event in self.history.of(Point.COMMIT_RECEIVED, Point.OFFSET_RESET, topic=TOPIC, queue_id=queue):
            if event.details["offset"] != latest and event.at >= self.zero:
                changes.append((self.at(event), event.details["offset"]))
            latest = event.details["offset"]
        return changes

    def delivered(self, kind: Kind = Point.LISTENER_CALLED) -> list[tuple[float, int]]:
        return [(at, event.details["offset"]) for at, event in self.since(kind, topic=TOPIC)]

    def added(self) -> list[tuple[float, int]]:
        """The times at which consumers took over queues, with their offsets."""
        return [(at, event.details["offset"]) for at, event in self.since(Point.QUEUE_ADDED, topic=TOPIC)]


def played(scenario_id: str, profile: Profile, mode: ResetMode = ResetMode.CLASSIC) -> History:
    async def play(stage: Stage) -> None:
        await SCENARIOS[scenario_id].play(stage)
        await stage.sleep(40)

    return simulate(play, profile=profile, mode=mode)


def _slow_listener(profile: Profile) -> Timeline:
    async def play(stage: Stage) -> None:
        plan = ListenerPlan(blocked=frozenset({150}), again=0.5)
        a = await steps.caught_up(stage, 150, listener=plan, options={"consume_thread_max": 4})
        await stage.send(1)
        await stage.until(Point.LISTENER_CALLED, offset=150)
        await stage.reset(0)
        await steps.wait_begun(stage)
        # The response to the only pull in flight arrives.
        await stage.send(1)
        await stage.sleep(14.0)
        await a.release(150)
        await stage.sleep(20)

    async def opened(stage: Stage) -> None:
        await stage.open()
        await play(stage)

    return Timeline(simulate(opened, profile=profile))


@pytest.mark.scenario("E01", "v42", "v49")
@pytest.mark.parametrize("profile", RELEASES_4)
def test_E01_a_listener_slower_than_the_wait_changes_nothing(profile: Profile) -> None:
    timeline = _slow_listener(profile)
    assert timeline.stored()[0] == (10.0, 0)
    discarded = [at for at, event in timeline.since(Point.RESULT_DISCARDED) if event.details["offset"] == 150]
    assert discarded == [14.0]
    finished = [at for at, _ in timeline.delivered(Point.LISTENER_RETURNED) if at > 10]
    for at, offset in timeline.stored()[1:]:
        assert offset <= sum(when <= at for when in finished)


@pytest.mark.scenario("E02", "v49")
def test_E02_without_the_checks_the_late_result_is_stored() -> None:
    timeline = _slow_listener(Profile.UNGUARDED)
    jump = next((at, offset) for at, offset in timeline.stored() if at > 10 and offset >= 151)
    assert 14.0 <= jump[0] <= 19.0


def _idle_with_pull_in_flight(
    profile: Profile, left: float, threads: int, *, kill_at: float | None = None
) -> Timeline:
    """E05, E07 and E08: OLD is 100, the pull returns in ``left`` seconds, a message takes 2 s."""

    async def play(stage: Stage) -> None:
        await stage.open()
        options = {**EIGHT_THREADS, "client_callback_executor_threads": threads}
        a = await steps.caught_up(stage, 100, listener=ListenerPlan(again=2.0), options=options)
        held = await stage.until(Point.PULL_SUSPENDED, topic=TOPIC, offset=100)
        started = stage.history.of(Lab.PROCESS_STARTED, process="broker-a")[0].at
        # The broker checks suspended pulls every 5 s; at 15 s, this pull is not 15 s old yet.
        assert 15 < started + 20 - held.at < 20
        await stage.sleep(started + 20 - left - stage.now)
        await stage.reset(0)
        if kill_at is None:
            await stage.sleep(50)
            return
        zero = await stage.until(Point.SUSPENDED)
        await stage.sleep(zero.at + kill_at - stage.now)
        await a.kill()
        await stage.consumer("A", listener=ListenerPlan(again=2.0), options=options)
        await stage.sleep(50)

    return Timeline(simulate(play, profile=profile))


@pytest.mark.scenario("E05", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", [*RELEASES_4, Profile.V53])
def test_E05_an_idle_queue_loses_the_stored_target_to_the_pull_in_flight(profile: Profile) -> None:
    timeline = _idle_with_pull_in_flight(profile, 13.0, 4)
    stored = dict(timeline.stored())
    assert stored[10.0] == 0
    answers = [at for at, event in timeline.since(Point.PULL_CALLBACK, topic=TOPIC, status="NO_NEW_MSG")]
    assert answers[0] == 13.0
    back = next(at for at, offset in timeline.stored() if at > 10 and offset == 100)
    assert 13.0 <= back <= 18.0
    # It stays there while the replay goes on below it, from 0.
    assert timeline.stored()[-1] == (back, 100)
    replayed = [offset for _, offset in timeline.delivered()]
    assert replayed == list(range(100))
    assert timeline.delivered()[-1][0] > 30


@pytest.mark.scenario("E07", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", [*RELEASES_4, Profile.V53])
def test_E07_one_callback_thread_handles_the_answer_right_after_the_wait(profile: Profile) -> None:
    timeline = _idle_with_pull_in_flight(profile, 5.0, 1)
    answered = [at for at, event in timeline.since(Point.PULL_ANSWERED, topic=TOPIC, offset=100)]
    assert answered[0] == 5.0
    handled = [at for at, event in timeline.since(Point.PULL_CALLBACK, topic=TOPIC, status="NO_NEW_MSG")]
    assert handled[0] == 10.0
    assert (10.0, 0) in timeline.stored()
    back = next(at for at, offset in timeline.stored() if at >= 10 and offset == 100)
    assert back <= 15.0


@pytest.mark.scenario("E08", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", [*RELEASES_4, Profile.V53])
def test_E08_a_restart_during_the_replay_loses_the_rest(profile: Profile) -> None:
    # Its first pull comes 0.5 s after it took the queue over again.
    late = 0.5 if profile is Profile.V53 else 0.0
    timeline = _idle_with_pull_in_flight(profile, 13.0, 4, kill_at=20.1 + late)
    assert len(timeline.delivered(Point.LISTENER_RETURNED)) == 40
    assert timeline.added()[-1][1] == 100
    # The eight messages in listeners at the kill were delivered once more, later ones never.
    assert [offset for _, offset in timeline.delivered()] == list(range(48))


@pytest.mark.scenario("E10", "v42", "v49")
@pytest.mark.parametrize("profile", RELEASES_4)
def test_E10_a_forward_reset_is_not_hurt_by_a_smaller_late_offset(profile: Profile) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        late = stage.hold(steps.pull(100, form=Form.RESPONSE), consumer="A")
        await steps.caught_up(stage, 100, tags="Wanted", tag="Wanted")
        await stage.send(32, tag="Unwanted")
        await late.wait()
        await stage.send(68, tag="Wanted")
        await stage.reset(150)
        zero = await stage.until(Point.SUSPENDED)
        await stage.sleep(zero.at + 12 - stage.now)
        late.release()
        await stage.sleep(20)

    timeline = Timeline(simulate(play, profile=profile))
    answer = [event for at, event in timeline.since(Point.PULL_CALLBACK, topic=TOPIC) if at == 12.0]
    assert [(event.details["status"], event.details["offset"]) for event in answer] == [
        ("NO_MATCHED_MSG", 132)
    ]
    applied = [(at, offset) for at, offset in timeline.stored() if at >= 10]
    assert applied[0] == (10.0, 150)
    assert all(offset >= 150 for _, offset in applied)
    assert [offset for _, offset in timeline.delivered()] == list(range(150, 200))


@pytest.mark.scenario("E11", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", [*RELEASES_4, Profile.V53])
def test_E11_a_rebalance_in_progress_leaves_two_chains(profile: Profile) -> None:
    timeline = Timeline(played("R4", profile))
    counts = Counter(offset for _, offset in timeline.delivered())
    assert [counts[new] for new in (12, 13)] == [2, 2]
    # The stored offset rises without any replay: messages before OLD are never delivered again.
    stored_before_the_second = [
        offset for at, offset in timeline.stored() if 10 <= at <= timeline.added()[-1][0]
    ]
    assert max(stored_before_the_second) > 0
    assert not {offset for _, offset in timeline.delivered()} & set(range(6))
    chains = {event.details["chain"] for at, event in timeline.since(Point.PULL_SENT, topic=TOPIC) if at > 20}
    assert len(chains) == 2


@pytest.mark.scenario("E12", "v42")
def test_E12_overlapping_resets_of_4_2_0_leave_two_chains() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await steps.caught_up(stage, 100)
        await stage.reset(10)
        zero = await stage.until(Point.SUSPENDED)
        await stage.sleep(zero.at + 3 - stage.now)
        await stage.reset(50)
        await stage.until(Point.RESUMED, count=2)
        await stage.sleep(2)
        await stage.send(30)
        await stage.sleep(20)

    timeline = Timeline(simulate(play, profile=Profile.V42))
    applied = [(at, event.details["offset"]) for at, event in timeline.since(Point.OFFSET_APPLIED)]
    assert applied == [(10.0, 10), (13.0, 50)]
    assert {(10.0, 10), (13.0, 50)} <= set(timeline.stored())
    counts = Counter(offset for _, offset in timeline.delivered())
    assert {counts[new] for new in range(100, 130)} == {2}


def _left_at_4(profile: Profile) -> tuple[Timeline, float]:
    history = played("R8", profile)
    timeline = Timeline(history)
    return timeline, timeline.at(history.of(Lab.PROCESS_STOPPED)[0])


@pytest.mark.scenario("E15", "v42")
def test_E15_a_shutdown_of_4_2_0_does_not_wait_for_the_reset() -> None:
    timeline, returned = _left_at_4(Profile.V42)
    assert returned == 4.0
    assert {offset for _, offset in timeline.stored()} == {6}
    assert timeline.delivered() == []


@pytest.mark.scenario("E16", "v49")
def test_E16_a_shutdown_of_4_9_4_waits_for_the_reset() -> None:
    timeline, returned = _left_at_4(Profile.V49)
    assert returned == 10.0
    assert (10.0, 0) in timeline.stored()
    assert [offset for _, offset in timeline.delivered()] == list(range(6))


@pytest.mark.scenario("E17", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", [*RELEASES_4, Profile.V53])
def test_E17_a_kill_leaves_the_old_offset_though_the_reset_was_acknowledged(profile: Profile) -> None:
    history = played("R8-KILL", profile)
    timeline = Timeline(history)
    assert timeline.at(history.of(Lab.PROCESS_KILLED)[0]) == 4.0
    assert history.of(Lab.RESET_ACKNOWLEDGED)
    assert 0 not in {offset for _, offset in timeline.stored()}
    # Consumption continues at the last message before OLD, which was not committed yet.
    assert [offset for _, offset in timeline.delivered()] == [5]


@pytest.mark.scenario("E28", "fenced")
def test_E17_in_fenced_mode_the_target_is_stored_despite_the_kill() -> None:
    timeline = Timeline(played("R8-KILL", Profile.EPOCH, ResetMode.FENCED), zero=Lab.RESET_STARTED)
    assert timeline.stored()[0] == (0.0, 0)


@pytest.mark.scenario("E18", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", [*RELEASES_4, Profile.V53])
def test_E18_a_broker_restart_at_the_end_of_the_wait_loses_the_commit(profile: Profile) -> None:
    history = played("R11", profile)
    timeline = Timeline(history)
    down = timeline.at(history.of(Lab.PROCESS_KILLED)[0])
    up = timeline.at(history.of(Lab.PROCESS_STARTED, process="broker-a")[-1])
    assert (down, up) == (9.0, 11.0)
    assert [at for at, _ in timeline.since(Point.OFFSET_APPLIED)] == [10.0]
    assert 0 not in {offset for _, offset in timeline.stored()}
    assert timeline.added()[-1][1] >= 5
    assert not {offset for _, offset in timeline.delivered()} & set(range(5))
    assert not history.of(Lab.RESET_REFUSED)


@pytest.mark.scenario("E20", "v42", "v49")
@pytest.mark.parametrize("profile", RELEASES_4)
def test_E20_a_pending_correction_takes_the_queue_out_of_the_reset(profile: Profile) -> None:
    timeline = Timeline(played("R3b", profile))
    assert timeline.since(Point.OFFSET_APPLIED) == []
    # The correction runs 10 s after the response, which is 7 s into the wait; 10 is the queue's end.
    assert timeline.stored() == [(7.0, 10)]
    assert timeline.added()[-1][1] == 10
    assert timeline.delivered() == []


@pytest.mark.scenario("E21", "v53s")
def test_E21_the_pull_that_collects_the_mark_stores_the_old_offset_once_more() -> None:
    timeline = Timeline(played("S1", Profile.V53, ResetMode.SERVER), zero=Lab.RESET_STARTED)
    assert [offset for _, offset in timeline.stored()][:3] == [0, 6, 0]


@pytest.mark.parametrize("profile", RELEASES_4)
def test_E21_clients_before_5_2_0_store_the_target_10_s_later(profile: Profile) -> None:
    timeline = Timeline(played("S1", profile, ResetMode.SERVER), zero=Lab.RESET_STARTED)
    back = next(at for at, offset in timeline.stored() if at > 1 and offset == 0)
    assert back == 10.0


@pytest.mark.scenario("E23", "v53s")
def test_E23_a_broker_restart_loses_the_mark() -> None:
    history = played("S3", Profile.V53, ResetMode.SERVER)
    timeline = Timeline(history, zero=Lab.RESET_STARTED)
    up = timeline.at(history.of(Lab.PROCESS_STARTED, process="broker-a")[-1])
    first = next((at, event) for at, event in timeline.since(Point.COMMIT_RECEIVED, topic=TOPIC) if at >= up)
    # The target survived the restart, but the running client's next commit replaced it.
    assert first[1].details["stored"] == 0
    assert first[1].details["offset"] == 6
    assert first[0] <= up + 5
    assert timeline.delivered() == []


@pytest.mark.scenario("E25", "v53s")
def test_E25_a_flow_controlled_consumer_does_not_learn_of_the_reset() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        plan = ListenerPlan(blocked=frozenset({6, 7}))
        await steps.caught_up(stage, 6, listener=plan, options={"pull_threshold_for_queue": 1})
        await stage.send(2)
        await stage.until(Point.LISTENER_CALLED, offset=7)
        await stage.reset(0)
        await stage.sleep(60)
        assert await stage.stored() == 0

    history = simulate(play, profile=Profile.V53, mode=ResetMode.SERVER)
    timeline = Timeline(history, zero=Lab.RESET_STARTED)
    assert timeline.stored() == [(0.0, 0)]
    # The consumer keeps committing its old offset, and each commit succeeds.
    assert len(timeline.since(Point.COMMIT_SENT, process=A, topic=TOPIC, offset=6)) >= 10
    assert timeline.delivered() == []


@pytest.mark.scenario("E26", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", [*RELEASES_4, Profile.V53])
def test_E26_commits_in_the_wrong_order_leave_the_old_offset(profile: Profile) -> None:
    timeline = Timeline(played("R9", profile))
    order = [offset for at, offset in timeline.stored() if at >= 10]
    assert order[:2] == [0, 6]
    assert timeline.added()[-1][1] == 6
    assert not {offset for _, offset in timeline.delivered()} & set(range(6))


@pytest.mark.scenario("E27", "v42", "v49")
@pytest.mark.parametrize("profile", RELEASES_4)
def test_E27_a_busy_broker_makes_a_client_of_4_x_begin_at_the_end(profile: Profile) -> None:
    history = played("ERR14", profile)
    timeline = Timeline(history)
    # Message 6 was sent during the wait, so the queue ends at 7.
    assert (10.0, 0) in timeline.stored()
    assert timeline.added()[-1] == (10.0, 7)
    empty = next(at for at, event in timeline.since(Point.PULL_ANSWERED, topic=TOPIC, code=19) if at > 10)
    back = next(at for at, offset in timeline.stored() if at > 10 and offset == 7)
    assert empty <= back <= empty + 5
    assert timeline.delivered() == []


def test_E27_a_client_of_5_3_3_asks_again() -> None:
    timeline = Timeline(played("ERR14", Profile.V53))
    assert [offset for _, offset in timeline.added()][-1] == 0
    assert [offset for _, offset in timeline.delivered()] == list(range(7))


@pytest.mark.scenario("E28", "fenced")
@pytest.mark.parametrize("scenario_id", ["R1", "R4", "R5", "R6", "R8-KILL", "R9", "S3", "S4"])
def test_E28_in_fenced_mode_what_is_stored_never_exceeds_what_was_redelivered(scenario_id: str) -> None:
    history = played(scenario_id, Profile.EPOCH, ResetMode.FENCED)
    reset = history.of(Point.OFFSET_RESET, topic=TOPIC)[-1]
    place = {"topic": TOPIC, "queue_id": reset.details["queue_id"]}
    finished: set[int] = set()
    for event in history:
        if event.at < reset.at or event.details.get("queue_id") != place["queue_id"]:
            continue
        if event.details.get("topic") != TOPIC or event.details.get("epoch") != reset.details["epoch"]:
            continue
        if event.kind is Point.LISTENER_RETURNED:
            finished.update(event.details["offsets"])
        elif event.kind is Point.COMMIT_RECEIVED:
            assert finished >= set(range(reset.details["offset"], event.details["offset"]))
    assert not [
        event
        for event in history.of(Point.COMMIT_RECEIVED, **place)
        if event.at > reset.at and event.details["epoch"] != reset.details["epoch"]
    ]


@pytest.mark.scenario("E28", "fenced")
def test_E28_a_stale_commit_is_refused_and_listed() -> None:
    history = played("R9", Profile.EPOCH, ResetMode.FENCED)
    fenced = history.of(Point.COMMIT_FENCED, topic=TOPIC, offset=6)
    assert fenced
    assert all(event.details["stored_epoch"] == 1 and event.details["epoch"] == 0 for event in fenced)
