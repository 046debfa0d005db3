"""Timer messages: when they are delivered, and with what (docs/spec/timers.md)."""

from __future__ import annotations

import pytest

from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.names import TIMER_TOPIC
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.timer.box import stored, waiting
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

V53 = Profile.V53
ILLEGAL = (
    "timer message illegal, the delay time should not be bigger than the max delay 259200000ms; or if set del"
    " msg, the delay time should be bigger than the current time"
)


@simulated(profile=V53)
async def test_a_timer_message_comes_back_with_the_properties_of_upstream(stage: SimStage) -> None:
    """Due at the end of the second before its time, or of the second of its time."""
    peer = stage.peer()
    await stage.at(1.25)
    response = await peer.send(
        properties={"TIMER_DELAY_MS": "3000", "TAGS": "A", "UNIQ_KEY": "U"}, queue_id=2
    )
    assert (response.code, response.ext["queueId"], response.ext["queueOffset"]) == (0, 2, 0)
    sent_ms = EPOCH_MS + 1_250
    await stage.at(5.0 - 0.001)
    assert not stored(stage.broker, "T", 2)
    await stage.at(5.1)
    (message,) = stored(stage.broker, "T", 2)
    (waits,) = waiting(stage.broker)
    assert message.store_timestamp == EPOCH_MS + 5_000
    assert message.properties == waits.properties | {
        "TIMER_ENQUEUE_MS": str(EPOCH_MS + 1_000),
        "TIMER_DEQUEUE_MS": str(message.store_timestamp),
    }
    assert (
        waits.properties
        | {
            "TIMER_DELAY_MS": "3000",
            "TIMER_OUT_MS": str((sent_ms + 3_000) // 1_000 * 1_000),
            "REAL_TOPIC": "T",
            "REAL_QID": "2",
            "TAGS": "A",
            "UNIQ_KEY": "U",
        }
        == waits.properties
    )


@pytest.mark.parametrize("name", ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
@simulated(profile=V53)
async def test_each_property_is_never_early_and_at_most_a_second_late(stage: SimStage, name: str) -> None:
    peer = stage.peer()
    due = {}
    for number in range(40):
        await stage.at(0.5 + number * 0.137)
        now_ms = stage.runtime.clock.now_ms()
        delay = 1 + number % 5
        value = {"TIMER_DELAY_SEC": delay, "TIMER_DELAY_MS": delay * 1_000 + number}.get(name)
        due_ms = now_ms + (delay * 1_000 if name == "TIMER_DELAY_SEC" else delay * 1_000 + number)
        due[b"%d" % number] = due_ms
        (
            await peer.send(body=b"%d" % number, properties={name: str(due_ms if value is None else value)})
        ).require_success()
    await stage.at(20.0)
    messages = stored(stage.broker)
    assert sorted(message.body for message in messages) == sorted(due)
    for message in messages:
        assert 0 <= message.store_timestamp - due[message.body] <= 1_000


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": "soon"},
        {"TIMER_DELAY_SEC": "259201"},
        {"TIMER_DELAY_SEC": "9223372036854775807"},
        {"TIMER_DELAY_SEC": "92233720368547758070"},
        {"TIMER_DELAY_MS": "3.5"},
        {"TIMER_DELAY_MS": "259200001"},
        {"TIMER_DELAY_MS": "-"},
        {"TIMER_DELIVER_MS": "0x10"},
        {"TIMER_DELIVER_MS": str(EPOCH_MS + 259_300_000)},
        {"TIMER_DELIVER_MS": "1", "TIMER_DEL_UNIQKEY": "K"},
    ],
)
@simulated(profile=V53)
async def test_a_bad_time_is_refused_with_upstreams_remark(
    stage: SimStage, properties: dict[str, str]
) -> None:
    response = await stage.peer().send(properties=properties)
    assert (response.code, response.remark) == (13, ILLEGAL)
    assert not stored(stage.broker)
    assert not waiting(stage.broker)


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELIVER_MS": "0"},
        {"TIMER_DELIVER_MS": "-1"},
        {"TIMER_DELIVER_MS": str(EPOCH_MS)},
        {"TIMER_DELAY_MS": "-5000"},
        {"TIMER_DELAY_SEC": "0"},
    ],
)
@simulated(profile=V53)
async def test_a_time_that_has_passed_is_no_timer(stage: SimStage, properties: dict[str, str]) -> None:
    (await stage.peer().send(properties=properties)).require_success()
    (message,) = stored(stage.broker)
    assert "TIMER_OUT_MS" not in message.properties
    assert not waiting(stage.broker)


@simulated(profile=V53)
async def test_a_delay_level_goes_first(stage: SimStage) -> None:
    (await stage.peer().send(properties={"DELAY": "1", "TIMER_DELAY_SEC": "100"})).require_success()
    await stage.at(3.0)
    (message,) = stored(stage.broker)
    assert not any(name.startswith("TIMER") for name in message.properties)


@simulated(profile=V53, store={"timer_wheel_enable": False})
async def test_a_broker_without_a_wheel_refuses_timers(stage: SimStage) -> None:
    response = await stage.peer().send(properties={"TIMER_DELAY_SEC": "10"})
    remark = "accurate timer message is not enabled, timerWheelEnable is false"
    assert (response.code, response.remark) == (1, remark)


@simulated(profile=V53, store={"timer_roll_window_slot": 10})
async def test_a_message_beyond_the_window_is_rolled(stage: SimStage) -> None:
    """Stored again after the window, or half of it, and at last delivered in time."""
    peer = stage.peer()
    await stage.at(1.0)
    (await peer.send(properties={"TIMER_DELAY_SEC": "45"})).require_success()
    await stage.at(47.5)
    (message,) = stored(stage.broker)
    assert message.store_timestamp == EPOCH_MS + 46_000
    rolls = [entry.properties.get("TIMER_ROLL_TIMES") for entry in waiting(stage.broker)]
    assert rolls == [None, "1", "2", "3", "4"][: len(rolls)]
    assert len(rolls) > 3
    assert message.properties["TIMER_ROLL_TIMES"] == rolls[-1]
    assert {entry.properties["TIMER_OUT_MS"] for entry in waiting(stage.broker)} == {str(EPOCH_MS + 45_000)}


@pytest.mark.parametrize(
    "crafted",
    [
        {"TIMER_OUT_MS": "1", "REAL_TOPIC": TIMER_TOPIC, "REAL_QID": "0"},
        {"TIMER_OUT_MS": "1", "REAL_TOPIC": "T", "REAL_QID": "9" * 5_000},
        {"TIMER_OUT_MS": str(EPOCH_MS + 3_123), "REAL_TOPIC": "T", "REAL_QID": "99999999999"},
        {"TIMER_OUT_MS": str(EPOCH_MS + 3_123), "REAL_TOPIC": "T"},
    ],
)
@simulated(profile=V53)
async def test_a_record_that_a_client_puts_into_the_timer_topic_stops_nothing(
    stage: SimStage, crafted: dict[str, str]
) -> None:
    peer = stage.peer()
    (await peer.send(TIMER_TOPIC, properties=crafted)).require_success()
    (await peer.send(properties={"TIMER_DELAY_SEC": "5"}, body=b"in time")).require_success()
    await stage.at(30.0)
    assert [message.body for message in stored(stage.broker)] == [b"in time"]
    assert len(waiting(stage.broker)) == 2


@simulated(profile=V53, store={"timer_roll_window_slot": 10})
async def test_a_rolled_message_may_have_any_count(stage: SimStage) -> None:
    peer = stage.peer()
    properties = {"TIMER_DELAY_SEC": "45", "TIMER_ROLL_TIMES": "9" * 5_000}
    (await peer.send(properties=properties)).require_success()
    await stage.at(50.0)
    assert len(stored(stage.broker)) == 1


@simulated(profile=V53)
async def test_a_message_deletes_another_of_its_second(stage: SimStage) -> None:
    peer = stage.peer()
    due = str(EPOCH_MS + 5_500)
    for key in ("A", "B"):
        (await peer.send(properties={"UNIQ_KEY": key, "TIMER_DELIVER_MS": due})).require_success()
    deletes = {"UNIQ_KEY": "A", "TIMER_DEL_UNIQKEY": "A", "TIMER_DELIVER_MS": due}
    (await peer.send(properties=deletes)).require_success()
    await stage.at(8.0)
    (message,) = stored(stage.broker)
    assert message.properties["UNIQ_KEY"] == "B"


@simulated(profile=V53)
async def test_the_broker_stores_messages_of_its_own(stage: SimStage) -> None:
    """With a system topic as the real one; a time that has passed stores at once."""
    timers = stage.broker.context.timers
    assert timers is not None
    message = StoredMessage("rmq_sys_REVIVE_LOG_c", 3, b"ck", b"TAGS\x01ck")
    await stage.at(0.5)
    for deliver_ms in (EPOCH_MS + 100, EPOCH_MS + 4_000):
        timers.put(message, deliver_ms)
    await stage.at(4.2)
    first, second = stored(stage.broker, "rmq_sys_REVIVE_LOG_c", 3)
    assert "TIMER_OUT_MS" not in first.properties
    assert second.store_timestamp == EPOCH_MS + 4_000
    assert second.properties["TIMER_DELIVER_MS"] == str(EPOCH_MS + 4_000)
    assert second.properties["TIMER_OUT_MS"] == str(EPOCH_MS + 3_000)


@simulated(profile=V53)
async def test_the_runtime_information_counts_timers(stage: SimStage) -> None:
    peer = stage.peer()
    for _ in range(3):
        (await peer.send(properties={"TIMER_DELAY_SEC": "60"})).require_success()
    timers = stage.broker.context.timers
    assert timers is not None
    assert timers.runtime_info()["timerOffsetBehind"] == "3"
    await stage.at(2.0)
    info = timers.runtime_info()
    assert (info["timerOffsetBehind"], info["timerCongestNum"]) == ("0", "3")
    await stage.at(70.0)
    assert timers.runtime_info()["timerCongestNum"] == "0"


@simulated(profile=V53)
async def test_deleting_a_topic_leaves_the_timers_of_others(stage: SimStage) -> None:
    peer = stage.peer()
    (await peer.send("Gone", properties={"TIMER_DELAY_SEC": "3"})).require_success()
    (await peer.send(properties={"TIMER_DELAY_SEC": "4"})).require_success()
    await stage.at(1.0)
    header = DeleteTopicRequestHeader("Gone")
    (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).require_success()
    (await peer.ask(RequestCode.CLEAN_UNUSED_TOPIC)).require_success()
    (await peer.send(properties={"TIMER_DELAY_SEC": "5"})).require_success()
    await stage.at(8.0)
    assert [message.properties["TIMER_DELAY_SEC"] for message in stored(stage.broker)] == ["4", "5"]


@simulated(profile=Profile.V49)
async def test_older_releases_know_no_timers(stage: SimStage) -> None:
    (await stage.peer().send(properties={"TIMER_DELAY_SEC": "60"})).require_success()
    assert len(stored(stage.broker)) == 1


@simulated(profile=V53)
async def test_the_timer_topic_is_one_of_the_brokers_own(stage: SimStage) -> None:
    """RocketMQ 5.5.1 ``TopicConfigManager``: one queue."""
    topics = stage.broker.context.tables.topics
    topic = topics.find(TIMER_TOPIC)
    assert topic is not None
    assert (topic.read_queue_nums, topic.write_queue_nums, topic.perm) == (1, 1, 6)
    assert topics.is_built_in(TIMER_TOPIC)


@pytest.mark.parametrize(
    ("profile", "store"), [(Profile.V49, {}), (V53, {"timer_wheel_enable": False})], ids=["v49", "off"]
)
def test_without_timers_there_is_no_timer_topic(
    simulate: RunScenario, profile: Profile, store: dict[str, bool]
) -> None:
    async def scenario(stage: SimStage) -> None:
        assert TIMER_TOPIC not in stage.broker.context.tables.topics.names

    simulate(scenario, profile=profile, store=store)
