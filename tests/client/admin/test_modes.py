"""Resets by mode as the administrator asks for them, and the list of fenced commits."""

from __future__ import annotations

import json

import pytest

from rewindmq import MessageQueue
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.header.reset import InvokeBrokerToResetOffsetResponseHeader, ResetOffsetRequestHeader
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.admin.members import GROUP, TOPIC, member, start_mute_broker
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
ONLINE = "%-40s  %-40s  %-40s"
HEADER = ONLINE % ("#brokerName", "#queueId", "#offset")

pytestmark = pytest.mark.usefixtures("utc")


async def consumed(stage: SimStage, messages: int = 3, queues: int = 2) -> None:
    """A group that has consumed everything, and is gone."""
    await stage.create_topic(TOPIC, queues)
    await stage.send(messages, TOPIC)
    async with member(stage):
        await stage.world.sleep(20)
    await stage.world.sleep(1)


def record(stage: SimStage, queue: MessageQueue) -> tuple[int, int]:
    offsets = stage.brokers[queue.broker_name].context.offsets
    return offsets.record(GROUP, queue.topic, queue.queue_id)


@pytest.mark.parametrize("mode", [ResetMode.SERVER, ResetMode.FENCED])
def test_a_mode_that_is_asked_for_is_used_and_shown(play: RunScenario, mode: ResetMode) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000 --mode {mode}")
        assert lines == [
            (
                f"rollback consumer offset by specified group[{GROUP}], topic[{TOPIC}], force[true], "
                f"timestamp(string)[1000], timestamp(long)[1000], mode[{mode}]"
            ),
            HEADER,
            ONLINE % ("broker-a", 0, 0),
            ONLINE % ("broker-a", 1, 0),
        ]
        assert record(stage, Q0) == record(stage, Q1) == (0, int(mode is ResetMode.FENCED))
        assert await stage.run(f"skipAccumulatedMessage -g {GROUP} -t {TOPIC} --mode {mode}") == [
            f"mode[{mode}]",
            HEADER,
            ONLINE % ("broker-a", 0, 3),
            ONLINE % ("broker-a", 1, 3),
        ]
        assert record(stage, Q0) == (3, 2 * (mode is ResetMode.FENCED))

    play(scenario)


def test_a_program_names_the_mode(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        admin = await stage.admin()
        result = await admin.reset_offset_by_timestamp(TOPIC, GROUP, 0, mode="Fenced")
        assert result.modes == {"broker-a": ResetMode.FENCED}
        [outcome] = await admin.reset_groups(TOPIC, [GROUP], 0, mode="FENCED")
        assert outcome.is_success
        address = stage.brokers["broker-a"].address
        await admin.reset_offset_of_queue(address, TOPIC, GROUP, 0, offset=1, mode="fenced")
        with pytest.raises(
            ClientError, match="mode 'fence' is none of classic, server, fenced; did you mean"
        ):
            await admin.reset_offset_by_timestamp(TOPIC, GROUP, 0, mode="fence")

    play(scenario)


def test_the_brokers_own_modes_are_shown_where_they_are_not_plain_classic(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.start_broker("broker-b", reset_mode=ResetMode.FENCED)
        await stage.create_topic(TOPIC, 2)
        await stage.send(1, TOPIC)
        async with member(stage):
            await stage.world.sleep(20)
            lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000")
            assert lines[0].endswith(", mode[broker-a=classic, broker-b=fenced]")
            admin = await stage.admin()
            result = await admin.reset_offset_by_timestamp(TOPIC, GROUP, 1000, mode=ResetMode.FENCED)
            assert result.modes == {"broker-a": ResetMode.FENCED, "broker-b": ResetMode.FENCED}
            classic = await stage.run(f"consumerProgress -g {GROUP}")
            assert classic

    play(scenario)


def test_classic_by_name_falls_back_as_ever_for_a_group_that_is_offline(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000 --mode classic")
        assert "consumerGroup[" in lines[0]
        assert "mode[" not in lines[0]
        assert record(stage, Q0) == (0, 0)

    play(scenario)


@pytest.mark.parametrize("mode", [ResetMode.CLASSIC, ResetMode.SERVER])
def test_after_a_fenced_reset_the_other_modes_and_the_direct_write_say_what_to_use(
    play: RunScenario, mode: ResetMode
) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        admin = await stage.admin()
        await admin.reset_offset_by_timestamp(TOPIC, GROUP, 1000, mode=ResetMode.FENCED)
        with pytest.raises(ResponseError, match="use --mode fenced"):
            await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s -1 --mode {mode}")
        with pytest.raises(ResponseError, match="resetMode=fenced") as refused:
            await admin.reset_offset_by_timestamp_old(TOPIC, GROUP, -1)
        assert refused.value.code == ResponseCode.OFFSET_FENCED
        assert record(stage, Q0) == (0, 1)

    play(scenario)


def test_without_force_a_fenced_reset_moves_back_only(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        line = f"-g {GROUP} -t {TOPIC} -f false --mode fenced"
        await stage.run(f"skipAccumulatedMessage {line}")
        assert record(stage, Q0) == (3, 0)
        await stage.run(f"resetOffsetByTime -s 1000 {line}")
        assert record(stage, Q0) == (0, 1)

    play(scenario)


# One queue.


def test_one_queue_goes_to_an_offset_and_zero_is_one(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        address = stage.brokers["broker-a"].address
        line = f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s -1 -b {address} --mode fenced"
        lines = await stage.run(f"{line} -q 1 -o 2")
        assert lines[1:] == [HEADER, ONLINE % ("broker-a", 1, 2)]
        assert lines[0].endswith("mode[fenced]")
        await stage.run(f"{line} -q 0 -o 0")
        assert (record(stage, Q0), record(stage, Q1)) == ((0, 1), (2, 1))
        await stage.run(f"{line} -q 0")
        assert record(stage, Q0) == (3, 2)

    play(scenario)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-q 1", "-b and -q go together"),
        ("-b 10.0.1.1:10911", "-b and -q go together"),
        ("-o 3", "name the queue with -b and -q"),
        ("-b 10.0.1.1:10911 -q 0 -o 3 -f false", "use -f false only with -s"),
        ("-b 10.0.1.1:10911 -q 0 --mode classic", "in classic mode this broker resets whole topics"),
        ("-b 10.0.1.1:10911 -q 9 --mode fenced", "queueId 9: topic TopicTest has 2 queues here"),
        (
            "-b 10.0.1.1:10911 -q 0 -o 9 --mode server",
            r"Target offset 9 not in consume queue range \[0-3\]",
        ),
    ],
)
def test_one_queue_asked_for_wrongly_resets_nothing(play: RunScenario, words: list[str], says: str) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        with pytest.raises((ClientError, ResponseError), match=says):
            await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0 {words}")
        assert record(stage, Q0) == (3, 0)

    play(scenario)


# Brokers that are not RewindMQ's.


class Foreign:
    """Answers 222 as a broker that knows no modes, or another one than it was asked for."""

    def __init__(self, mode: ResetMode | None) -> None:
        self.mode = mode
        self.asked: list[ResetOffsetRequestHeader] = []

    def handle(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        self.asked.append(request.decode_header(ResetOffsetRequestHeader))
        header = None if self.mode is None else InvokeBrokerToResetOffsetResponseHeader(self.mode)
        return RemotingCommand(ResponseCode.SUCCESS, header, ResetOffsetBody({Q0: 0}))


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (None, "broker-b was asked to reset in mode fenced, but its response names no mode"),
        (
            ResetMode.SERVER,
            "broker-b was asked to reset in mode fenced, but its response names mode server",
        ),
    ],
)
def test_a_broker_that_does_not_use_the_mode_asked_for_is_an_error_that_says_what_happened(
    play: RunScenario, answers: ResetMode | None, says: str
) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        foreign = Foreign(answers)
        await start_mute_broker(stage, "broker-b", reset=foreign.handle)
        admin = await stage.admin()
        with pytest.raises(ClientError, match=says) as refused:
            await admin.reset_offset_by_timestamp(TOPIC, GROUP, 0, mode=ResetMode.FENCED)
        assert "the group was reset there in another way" in str(refused.value)
        assert refused.value.__notes__ == ["already reset: broker-a"]
        assert foreign.asked[0].reset_mode is ResetMode.FENCED

    play(scenario)


def test_a_broker_that_names_no_mode_is_fine_where_none_was_asked_for(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        await stage.send(1, TOPIC)
        async with member(stage):
            await stage.world.sleep(20)
            await start_mute_broker(stage, "broker-b", reset=Foreign(None).handle)
            result = await (await stage.admin()).reset_offset_by_timestamp(TOPIC, GROUP, 0)
            assert result.modes == {"broker-a": ResetMode.CLASSIC, "broker-b": None}

    play(scenario)


def test_one_queue_is_not_asked_of_a_broker_that_would_reset_the_whole_topic(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        foreign = Foreign(None)
        await start_mute_broker(stage, "broker-b", reset=foreign.handle)
        with pytest.raises(ClientError, match="does not know reset modes"):
            await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0 -b 10.0.1.99:10911 -q 0 -o 1")
        assert foreign.asked == []

    play(scenario)


# The list.


FENCED = "%-23s  %-20s  %-24s  %-24s  %-5s  %-12s  %-7s  %-12s  %-14s  %-4s  %-36s  %s"
FENCED_HEADER = FENCED % (
    *("#Time", "#Broker", "#Group", "#Topic", "#QID", "#Offset", "#Epoch", "#Stored", "#Stored Epoch"),
    *("#By", "#Client", "#Reason"),
)


async def two_fenced_commits(stage: SimStage) -> str:
    """One of a consumer that was running, at broker-a, and one of somebody's at broker-b; the first's id."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    async with member(stage) as consumer:
        await stage.world.sleep(20.5)
        admin = await stage.admin()
        await admin.reset_offset_by_timestamp(TOPIC, GROUP, 1000, mode=ResetMode.FENCED)
        with pytest.raises(ResponseError, match="not stored"):
            await admin.reset_offset_by_timestamp_old(TOPIC, GROUP, -1)
        # Its 5 s commit of what it had consumed.
        await stage.world.sleep(6)
        return consumer.client_id


def test_fenced_commits_of_all_brokers_as_a_table(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        client_id = await two_fenced_commits(stage)
        lines = await stage.run("fencedCommits")
        assert lines[0].rstrip() == FENCED_HEADER
        rows = [line.split(maxsplit=12) for line in lines[1:-2]]
        assert all(row[0] == "2023-11-14" for row in rows)
        by_broker = {name: [row for row in rows if row[2] == name] for name in ("broker-a", "broker-b")}
        assert by_broker["broker-a"][0][3:11] == [GROUP, TOPIC, "0", "3", "-", "0", "1", "15"]
        for name in by_broker:
            assert any(row[11] == client_id for row in by_broker[name])
        assert lines[-2:] == ["", f"Listed: {len(rows)}, of {len(rows)} since the brokers started"]
        nothing = [lines[0], "", f"Listed: 0, of {len(rows)} since the brokers started"]
        assert await stage.run("fencedCommits -g nobody") == nothing
        assert await stage.run(f"fencedCommits -g {GROUP} -t nothing") == nothing

    play(scenario, brokers=2)


def test_fenced_commits_of_one_broker_and_from_python(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await two_fenced_commits(stage)
        admin = await stage.admin()
        address = stage.brokers["broker-b"].address
        at_b = await admin.fenced_commits(GROUP, TOPIC, address)
        everywhere = await admin.fenced_commits()
        assert list(everywhere) == ["broker-a", "broker-b"]
        assert at_b == {address: everywhere["broker-b"]}
        assert {commit.topic for commit in at_b[address].commits} == {TOPIC}
        lines = await stage.run(f"fencedCommits -b {address}")
        assert len(lines) == 3 + len(at_b[address].commits)
        data = await stage.data("fencedCommits")
        assert [entry["broker"] for entry in data] == ["broker-a", "broker-b"]
        first = data[0]["commits"][0]
        known = {"group": GROUP, "offset": 3, "epoch": None, "storedEpoch": 1, "carrier": 15, "clientId": ""}
        assert first.items() >= known.items()
        json.dumps(data)

    play(scenario, brokers=2)


def test_a_broker_that_lists_none_is_named(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await start_mute_broker(stage, "broker-b")
        with pytest.raises(ResponseError) as refused:
            await stage.run("fencedCommits")
        assert refused.value.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert refused.value.__notes__ == ["from broker-b"]

    play(scenario)


# What running consumers make of it.


@pytest.mark.parametrize("mode", [ResetMode.SERVER, ResetMode.FENCED])
@pytest.mark.parametrize("profile", RELEASES)
def test_a_running_consumer_of_every_release_replays_and_its_progress_counts_again(
    play: RunScenario, profile: Profile, mode: ResetMode
) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 1)
        await stage.send(10, TOPIC, gap=0.1)
        async with member(stage):
            await stage.world.sleep(30)
            assert stage.stored_offset(Q0, GROUP) == 10
            stage.consumed.clear()
            await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000 --mode {mode}")
            # 21 to a client of 4.x: 10 s, and then the next rebalance.
            await stage.world.sleep(60)
            assert stage.consumed == [(Q0, offset) for offset in range(10)]
            assert stage.stored_offset(Q0, GROUP) == 10
            await stage.send(2, TOPIC)
            await stage.world.sleep(20)
            assert stage.stored_offset(Q0, GROUP) == 12
        # Nothing is fenced but what those consumers sent before they had joined again.
        admin = await stage.admin()
        fenced = (await admin.fenced_commits())["broker-a"].commits
        assert all(commit.epoch is None and commit.stored_offset == 0 for commit in fenced)

    play(scenario, profile=profile)


@pytest.mark.parametrize("profile", RELEASES)
def test_a_legacy_consumer_goes_on_after_the_broker_has_restarted(
    play: RunScenario, profile: Profile
) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 1)
        await stage.send(10, TOPIC, gap=0.1)
        async with member(stage):
            await stage.world.sleep(30)
            await stage.run(f"skipAccumulatedMessage -g {GROUP} -t {TOPIC} --mode fenced")
            await stage.world.sleep(60)
            await stage.restart_broker()
            await stage.world.sleep(90)
            await stage.send(3, TOPIC)
            await stage.world.sleep(60)
            assert record(stage, Q0) == (13, 1)

    play(scenario, profile=profile)
