"""The contract of all stages: the same lines of a scenario, simulated and with real processes."""

from __future__ import annotations

import pytest

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.scenario.steps import pull
from rewindmq.race.stage.stage import GROUP, TOPIC, ListenerPlan, Stage
from tests.race.stages import Player, act, held_answer, simulate

FROM_FIRST = {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
SIMULATED = pytest.param(simulate, id="simulated")
# Starting processes takes seconds, so the default group plays one test with them.
WITH_PROCESSES = pytest.param(act, id="processes", marks=pytest.mark.slow)


@pytest.fixture(params=[SIMULATED, WITH_PROCESSES])
def player(request: pytest.FixtureRequest) -> Player:
    result: Player = request.param
    return result


@pytest.mark.parametrize("player", [simulate, act], ids=["simulated", "processes"])
def test_E05_a_held_answer_that_arrives_after_the_wait_loses_the_reset(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(10)
        answer = stage.hold(held_answer(10), consumer="A")
        # So long that only the held response can restore offset 10.
        await stage.consumer("A", listener=ListenerPlan(again=2000.0), options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=10, topic=TOPIC)
        await stage.reset(0)
        await answer.wait()
        await stage.until(Point.RESUMED)
        await stage.until(Point.COMMIT_RECEIVED, offset=0, stored=10)
        assert await stage.stored() == 0
        # Until the queue is added again, an offset in memory is removed together with the old queue.
        await stage.until(Point.QUEUE_ADDED, topic=TOPIC, queue_id=0, count=2)
        answer.release()
        await stage.until(Point.COMMIT_RECEIVED, offset=10, stored=0)
        assert await stage.stored() == 10

    history = player(play)
    (started,) = history.of(Lab.RESET_STARTED)
    assert started.details.items() >= {"group": GROUP, "mode": "classic", "offset": 0}.items()
    (acknowledged,) = history.of(Lab.RESET_ACKNOWLEDGED, process="admin")
    assert acknowledged.details["targets"] == [["broker-a", 0, 0]]
    (held,) = history.of(Lab.FRAME_HELD)
    (released,) = history.of(Lab.FRAME_RELEASED)
    assert held.details["id"] == released.details["id"]
    assert max(held.at, history.of(Point.RESUMED)[0].at) < released.at
    assert [event.details["offset"] for event in history.of(Lab.STORED_OFFSET)] == [0, 10]
    assert [event.at for event in history] == sorted(event.at for event in history)


def test_a_reset_goes_to_the_very_message_it_names(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open(queues=2)
        await stage.send(6, queue=1)
        await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=6, queue_id=1, topic=TOPIC)
        await stage.until(Point.COMMIT_RECEIVED, queue_id=0, topic=TOPIC)
        for offset in (4, 6, 0):
            await stage.reset(offset, queue=1)
        with pytest.raises(
            RaceError, match="a reset to offset 7 of queue 1 at broker-a, which has 6 messages"
        ):
            await stage.reset(7, queue=1)

    asked = player(play).of(Lab.RESET_ACKNOWLEDGED)
    assert [dict_of(event.details["targets"])[1] for event in asked] == [4, 6, 0]


def dict_of(targets: list[list[object]]) -> dict[object, object]:
    return {queue: offset for _, queue, offset in targets}


def test_a_refused_reset_is_part_of_the_history(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(1)
        await stage.reset(0)

    (refused,) = player(play).of(Lab.RESET_REFUSED)
    assert refused.details["code"] == 1
    assert "not exist" in refused.details["remark"]


def test_a_blocked_listener_returns_when_it_is_released_and_blocks_once(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(3)
        consumer = await stage.consumer(
            "A", listener=ListenerPlan(blocked=frozenset({1})), options=FROM_FIRST
        )
        await stage.until(Point.LISTENER_RETURNED, offset=2)
        assert not stage.history.of(Point.LISTENER_RETURNED, offset=1)
        await consumer.release(1)
        await stage.until(Point.LISTENER_RETURNED, offset=1)
        await stage.until(Point.COMMIT_RECEIVED, offset=3, topic=TOPIC)
        await stage.reset(0)
        await stage.until(Point.LISTENER_RETURNED, offset=1, count=2)

    player(play)


def test_E03_a_step_can_be_stalled_between_its_check_and_its_effect(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(1)
        stall = stage.hold_stall(Point.RESULT_ACCEPTED, consumer="A", offset=1)
        # The response "no new message" at 1 would set the offset to 1, too.
        answer = stage.hold(pull(1, form=Form.RESPONSE), consumer="A")
        await stage.consumer("A", options=FROM_FIRST)
        await stall.wait()
        await stage.sleep(12.0)
        assert not stage.history.of(Point.OFFSET_UPDATED, offset=1, topic=TOPIC)
        assert stall.caught == 1
        stall.release()
        await stage.until(Point.OFFSET_UPDATED, offset=1, topic=TOPIC)
        answer.release()
        later = stage.hold_stall(Point.RESULT_ACCEPTED, consumer="A", offset=2)
        await stage.send(1)
        await later.wait()
        with pytest.raises(RaceError, match=r"client\.result_accepted can be released, not dropped"):
            later.drop()

    player(play)


def test_a_killed_consumer_is_silent_and_another_of_its_name_takes_over(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open(consumers=2)
        await stage.send(2)
        # Its own commits never cover unfinished messages, however late the kill comes.
        plan = ListenerPlan(blocked=frozenset({1}))
        first = await stage.consumer("A", listener=plan, options=FROM_FIRST)
        await stage.until(Point.LISTENER_CALLED, offset=1)
        await first.kill()
        await stage.sleep(1.0)
        assert not stage.history.of(Point.COMMIT_RECEIVED, topic=TOPIC, offset=2)
        await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.LISTENER_RETURNED, offset=1)

    history = player(play)
    (killed,) = history.of(Lab.PROCESS_KILLED, process="consumer-A")
    _, second = history.of(Lab.PROCESS_STARTED, process="consumer-A")
    assert second.details["profile"] == "v49"
    own = {event.details["client_id"] for event in history.of(Point.LISTENER_CALLED)}
    assert {client_id.rpartition("@")[2] for client_id in own} == {"A", "A.2"}
    assert not [
        event
        for event in history
        if event.process == "consumer-A"
        and isinstance(event.kind, Point)
        and killed.at < event.at < second.at
    ]


def test_a_consumer_that_stops_commits_and_unregisters(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(2)
        consumer = await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.LISTENER_RETURNED, offset=1)
        await consumer.stop()
        # The last commit is oneway.
        await stage.until(Point.COMMIT_RECEIVED, topic=TOPIC, offset=2)
        assert await stage.stored() == 2

    history = player(play)
    assert history.of(Lab.PROCESS_STOPPED, process="consumer-A")


def test_a_suspended_consumer_pulls_nothing(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(1)
        answer = stage.hold(pull(0, form=Form.RESPONSE), consumer="A")
        consumer = await stage.consumer("A", options=FROM_FIRST)
        await answer.wait()
        await consumer.suspend()
        # The outstanding pull returns the first message.
        answer.release()
        await stage.until(Point.LISTENER_RETURNED, offset=0)
        await stage.send(1)
        await stage.sleep(5.0)
        assert not stage.history.of(Point.LISTENER_CALLED, offset=1)
        await consumer.resume()
        await stage.until(Point.LISTENER_CALLED, offset=1)

    player(play)


def test_a_killed_broker_comes_back_at_its_address_with_its_messages(player: Player) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(3)
        await stage.kill_broker()
        await stage.sleep(1.0)
        await stage.start_broker()
        await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.LISTENER_RETURNED, offset=2)

    history = player(play)
    assert len(history.of(Lab.PROCESS_KILLED, process="broker-a")) == 1
    assert len(history.of(Lab.PROCESS_STARTED, process="broker-a")) == 2


@pytest.mark.parametrize("profile", Profile)
def test_every_client_profile_can_be_played(profile: Profile) -> None:
    async def play(stage: Stage) -> None:
        await stage.open(brokers=2)
        await stage.send(1, broker="broker-b", tag="x")
        await stage.send(1, broker="broker-b", tag="y")
        await stage.consumer("A", tags="y", options=FROM_FIRST)
        await stage.until(Point.LISTENER_RETURNED, broker_name="broker-b", offset=1)

    history = simulate(play, profile=profile)
    assert [event.details["offset"] for event in history.of(Point.LISTENER_CALLED)] == [1]


def test_a_wait_that_times_out_names_the_missing_event() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        with pytest.raises(RaceError, match=r"no client\.suspended \(process=consumer-A\) within 0\.5 s"):
            await stage.until(Point.SUSPENDED, seconds=0.5, process="consumer-A")

    simulate(play)


@pytest.mark.parametrize(
    ("player", "options", "text"),
    [
        (simulate, {"no_such": 1}, "options of the consumer: .*no_such"),
        (simulate, {"consume_from_where": "NOWHERE"}, "options of the consumer: 'NOWHERE' is not a valid"),
        (simulate, {"pull_batch_size": 0}, r"pull_batch_size Out of range \[1, 1024\]"),
        (act, {"pull_batch_size": 0}, r"pull_batch_size Out of range \[1, 1024\]"),
    ],
)
def test_bad_options_of_a_consumer_are_one_line(
    player: Player, options: dict[str, object], text: str
) -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.consumer("A", options=options)

    with pytest.raises(RewindMQError, match=text):
        player(play)
