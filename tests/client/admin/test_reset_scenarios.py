"""Reset scenarios with the admin commands, in the modes that each scenario names, in virtual time.

Specification: docs/spec/scenarios.md, D03 to D34.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, MessageQueue, ResetResult
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError, RequestTimeoutError, ResponseError
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.subscription import build_subscription_data
from tests.client.admin.support import GROUP, TOPIC, new_consumer, start_mute_broker
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS

# v42, v49, v53c, v53s.
MODES = [(profile, ResetMode.CLASSIC) for profile in RELEASES] + [(Profile.V53, ResetMode.SERVER)]
of_every_mode = pytest.mark.parametrize(("profile", "mode"), MODES)


@pytest.mark.scenario("D03", "v53s")
@played(profile=Profile.V53)
async def test_D03_in_server_mode_skipped_messages_are_never_delivered(stage: SimStage) -> None:
    """Stored offset 100, maximum 200: the skip stores 200, and messages between are never delivered."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(200, TOPIC, gap=0.01)
    got = []

    async def first_hundred(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        got.append(messages[0].queue_offset)
        if 100 <= got[-1] < 200:
            await stage.world.sleep(60)
        return OK

    async with new_consumer(stage, listener=first_hundred):
        await stage.world.sleep(20)
        in_listeners = set(got)
        assert (stage.stored_offset(Q0, GROUP), in_listeners >= set(range(101))) == (100, True)
        lines = await stage.run(f"skipAccumulatedMessage -g {GROUP} -t {TOPIC} --mode server")
        assert lines[-1].split() == ["broker-a", "0", "200"]
        await stage.world.sleep(90)
        assert set(got) == in_listeners
        assert stage.stored_offset(Q0, GROUP) == 200
        await stage.send(1, TOPIC)
        await stage.world.sleep(5)
        assert got[-1] == 200


@pytest.mark.scenario("D06", "v53s")
@played(profile=Profile.V53)
async def test_D06_in_server_mode_now_is_the_end(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(100, TOPIC, gap=0.1)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s now --mode server")
        assert "timestamp(long)[-1]" not in lines[0]
        assert lines[-1].split() == ["broker-a", "0", "100"]


@pytest.mark.scenario("D07", "v42", "v49", "v53c", "v53s")
@of_every_mode
@played()
async def test_D07_an_unknown_topic_fails_with_17_and_no_broker_is_asked(
    stage: SimStage, profile: Profile, mode: ResetMode
) -> None:
    seen = []
    admin = await stage.admin(probe=lambda point, details: seen.append(point))
    with pytest.raises(ResponseError) as refused:
        await admin.resets.reset("nowhere", GROUP, 0, mode=mode)
    assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST
    assert "nowhere" in refused.value.remark
    assert Point.RESET_SENT not in seen


async def start_old_consumer(stage: SimStage) -> None:
    """Connect a consumer of 3.0.6, which does not know RESET_CONSUMER_CLIENT_OFFSET (220)."""
    client = RemotingClient(stage.world.runtime("10.0.2.9"))
    stage.at_exit(client.close)
    subscription = build_subscription_data(TOPIC, "*")
    data = HeartbeatData("old", [], [ConsumerData(GROUP, subscription_data_set=[subscription])])
    beat = RemotingCommand(RequestCode.HEART_BEAT, body=data, version=27)
    (await client.invoke(stage.brokers["broker-a"].address, beat)).require_success()


@pytest.mark.scenario("D12", "v42", "v49", "v53c")
@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.CLASSIC)
async def test_D12_an_old_consumer_fails_the_reset_but_consumers_before_it_apply_it(
    stage: SimStage, profile: Profile
) -> None:
    """The second of two consumers is too old: the broker returns SYSTEM_ERROR (1) with its version."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        await start_old_consumer(stage)
        with pytest.raises(ResponseError) as refused:
            await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0")
        assert str(refused.value) == (
            "CODE: 1  DESC: the client does not support this feature. version=V3_0_6"
        )
        await stage.world.sleep(9.5)
        assert stage.stored_offset(Q0, GROUP) == 3
        await stage.world.sleep(1)
        assert stage.stored_offset(Q0, GROUP) == 0


@pytest.mark.scenario("D19", "v42", "v49", "v53c", "v53s")
@of_every_mode
@played()
async def test_D19_after_a_timeout_the_broker_before_it_stays_reset(
    stage: SimStage, profile: Profile, mode: ResetMode
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        stage.consumed.clear()
        await start_mute_broker(stage, "broker-b")
        admin = await stage.admin()
        began = stage.world.now
        with pytest.raises(RequestTimeoutError) as failure:
            await admin.resets.reset(TOPIC, GROUP, 0, mode=mode)
        assert stage.world.now - began == pytest.approx(5.0, abs=0.1)
        assert failure.value.__notes__ == ["already reset: broker-a"]
        # In server mode a suspended pull must end first.
        await stage.world.sleep(25)
        assert len(stage.consumed) == 6


@pytest.mark.parametrize(
    ("profile", "online", "offline"),
    [
        (Profile.V42, "rollback consumer offset by specified ", "rollback consumer offset by specified "),
        (Profile.V49, "rollback consumer offset by specified ", "rollback consumer offset by specified "),
        (Profile.V53, "start reset consumer offset by specified, ", "reset consumer offset by specified "),
    ],
)
@played(reset_mode=ResetMode.CLASSIC)
async def test_the_first_line_is_that_of_the_imitated_release(
    stage: SimStage, profile: Profile, online: str, offline: str
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    rest = f"[{GROUP}], topic[{TOPIC}], force[true], timestamp(string)[5], timestamp(long)[5]"
    async with new_consumer(stage):
        await stage.world.sleep(20)
        assert (await stage.run(f"{TOOL} -s 5"))[0] == f"{online}group{rest}"
    await stage.world.sleep(1)
    assert (await stage.run(f"{TOOL} -s 5"))[0] == f"{offline}consumerGroup{rest}"


# The reset of one queue as RocketMQ 5's tool does it.


TOOL = f"resetOffsetByTime -g {GROUP} -t {TOPIC}"


@pytest.mark.scenario("D30", "v53s")
@pytest.mark.parametrize("words", ["-s now -o 0", "-s 0"])
@played(profile=Profile.V53)
async def test_D30_the_tool_of_5x_sends_nothing_for_offset_0(stage: SimStage, words: str) -> None:
    """For target 0, given or found, neither UPDATE_CONSUMER_OFFSET (15) nor the reset (222) is sent."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    broker = stage.brokers["broker-a"]
    broker.context.tables.groups.find(GROUP)
    broker.context.offsets.table.commit(GROUP, TOPIC, 0, 3)
    lines = await stage.run(f"{TOOL} {words} -b {broker.address} -q 0")
    assert lines[0].startswith(
        f"start reset consumer offset by specified, group[{GROUP}], topic[{TOPIC}], queueId[0], broker["
    )
    assert lines[1] == "reset consumer offset to 0"
    assert lines[2].startswith("nothing was sent")
    assert broker.context.offsets.table.query(GROUP, TOPIC, 0) == 3
    assert len(broker.context.offsets.marks) == 0
    data = await stage.data(f"{TOOL} {words} -b {broker.address} -q 0")
    assert (data["offset"], data["applied"]) == (0, False)


@played(profile=Profile.V53)
async def test_the_tool_of_5x_commits_and_then_resets_any_other_offset(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    context = stage.brokers["broker-a"].context
    context.tables.groups.find(GROUP)
    lines = await stage.run(f"{TOOL} -s now -b {stage.brokers['broker-a'].address} -q 0 -o 2")
    assert lines[1:] == ["reset consumer offset to 2"]
    assert (context.offsets.table.query(GROUP, TOPIC, 0), context.offsets.marks.find(GROUP, TOPIC, 0)) == (
        2,
        2,
    )


@played(profile=Profile.V53, reset_mode=ResetMode.CLASSIC)
async def test_the_tool_of_5x_at_a_classic_broker_is_refused_after_its_commit(stage: SimStage) -> None:
    """The broker refuses the reset, the error's note names the commit, and the other queue does not move."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    context = stage.brokers["broker-a"].context
    context.tables.groups.find(GROUP)
    for queue in (Q0, Q1):
        context.offsets.table.commit(GROUP, TOPIC, queue.queue_id, 3)
    with pytest.raises(ResponseError, match="resets whole topics") as refused:
        await stage.run(f"{TOOL} -s now -b {stage.brokers['broker-a'].address} -q 0 -o 2")
    assert refused.value.__notes__ == ["offset 2 was already committed, as RocketMQ 5's tool does first"]
    assert [stage.stored_offset(Q0, GROUP), stage.stored_offset(Q1, GROUP)] == [2, 3]


@played(profile=Profile.V53)
async def test_the_tool_of_5x_sends_no_reset_to_other_brokers(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await start_mute_broker(stage, "broker-b")
    with pytest.raises(ClientError, match="does not know reset modes"):
        await stage.run(f"{TOOL} -s now -b 10.0.1.99:10911 -q 0 -o 2")


# Several groups.


@pytest.mark.scenario("D33", "v49")
@played(profile=Profile.V49)
async def test_D33_several_groups_have_an_outcome_each_in_order(stage: SimStage) -> None:
    """As in the dashboard: an online group is reset, an offline one is written, an unknown one fails."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    async with new_consumer(stage, "offline"):
        await stage.world.sleep(20)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        admin = await stage.admin()
        outcomes = await admin.resets.reset_groups(TOPIC, [GROUP, "offline", "unknown", GROUP], 0)
        assert [*outcomes] == [GROUP, "offline", "unknown"]
        online, offline, unknown = outcomes.values()
        assert isinstance(online, ResetResult)
        assert online == ResetResult({Q0: 0, Q1: 0}, online.modes)
        assert isinstance(offline, ResetResult)
        assert offline.written is not None
        assert offline.offset_table == {Q0: 0, Q1: 0}
        assert [stage.stored_offset(queue, "offline") for queue in (Q0, Q1)] == [0, 0]
        assert str(unknown) == "CODE: 1  DESC: THe consumer group <unknown> not exist"


@played()
async def test_an_incomplete_reset_of_a_group_names_the_brokers_already_reset(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        await start_mute_broker(stage, "broker-b")
        outcomes = await (await stage.admin()).resets.reset_groups(TOPIC, [GROUP], 0)
        failure = outcomes[GROUP]
        assert isinstance(failure, RequestTimeoutError)
        assert failure.__notes__ == ["already reset: broker-a"]


# A client of another release.


@pytest.mark.scenario("D34", "v53s")
@played(profile=Profile.V53, reset_mode=ResetMode.SERVER)
async def test_D34_after_a_server_side_reset_a_4x_client_pauses_the_queue_for_at_least_10_s(
    stage: SimStage,
) -> None:
    """The queue pauses for at least 10 s; then its client commits the target and takes it over again."""
    await stage.create_topic(TOPIC, 1)
    came = []

    async def busy(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        came.append((stage.world.now, messages[0].queue_offset))
        return OK

    async with new_consumer(stage, listener=busy, profile=Profile.V49):
        sending = asyncio.create_task(stage.send(700, TOPIC, gap=0.1))
        await stage.world.sleep(30)
        before = len(came)
        admin = await stage.admin()
        result = await admin.resets.reset(TOPIC, GROUP, 1000)
        assert (result.modes, result.offset_table) == ({"broker-a": ResetMode.SERVER}, {Q0: 0})
        began = stage.world.now
        # The broker ignores the client's own commits, or the client's commit of the target overwrites
        # them: the stored offset is 0 in the end.
        while len(came) <= before + 5:
            await stage.world.sleep(0.1)
        delivered = [offset for when, offset in came if when > began + 1]
        again = next(when for when, _ in came if when > began + 1)
        assert delivered[0] == 0
        assert 10 <= again - began <= 30.5
        await sending
        await stage.world.sleep(30)
        assert len({offset for when, offset in came if when >= again}) == 700
        assert stage.stored_offset(Q0, GROUP) == 700
