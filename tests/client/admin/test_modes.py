"""Resets in each mode with the admin commands, and the list of fenced commits."""

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
from tests.client.admin.support import GROUP, TOPIC, new_consumer, start_mute_broker
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)
ONLINE = "%-40s  %-40s  %-40s"
HEADER = ONLINE % ("#brokerName", "#queueId", "#offset")

pytestmark = pytest.mark.usefixtures("utc")


async def consume_and_leave(stage: SimStage, messages: int = 3, queues: int = 2) -> None:
    """Send messages, consume all of them with the group, and shut its consumer down."""
    await stage.create_topic(TOPIC, queues)
    await stage.send(messages, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
    await stage.world.sleep(1)


def record(stage: SimStage, queue: MessageQueue) -> tuple[int, int]:
    offsets = stage.brokers[queue.broker_name].context.offsets.table
    return offsets.record(GROUP, queue.topic, queue.queue_id)


@pytest.mark.parametrize("mode", [ResetMode.SERVER, ResetMode.FENCED])
@played()
async def test_the_chosen_mode_is_used_and_printed(stage: SimStage, mode: ResetMode) -> None:
    await consume_and_leave(stage)
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


@played()
async def test_a_program_may_name_the_mode_as_text(stage: SimStage) -> None:
    await consume_and_leave(stage)
    admin = await stage.admin()
    result = await admin.resets.reset(TOPIC, GROUP, 0, mode="Fenced")
    assert result.modes == {"broker-a": ResetMode.FENCED}
    outcomes = await admin.resets.reset_groups(TOPIC, [GROUP], 0, mode="FENCED")
    assert outcomes == {GROUP: result}
    address = stage.brokers["broker-a"].address
    await admin.resets.reset_queue(address, TOPIC, GROUP, 0, offset=1, mode="fenced")
    with pytest.raises(ClientError, match="mode 'fence' is none of classic, server, fenced; did you mean"):
        await admin.resets.reset(TOPIC, GROUP, 0, mode="fence")


@played()
async def test_the_brokers_own_modes_are_printed_unless_all_are_classic(stage: SimStage) -> None:
    await stage.start_broker("broker-b", reset_mode=ResetMode.FENCED)
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000")
        assert lines[0].endswith(", mode[broker-a=classic, broker-b=fenced]")
        admin = await stage.admin()
        result = await admin.resets.reset(TOPIC, GROUP, 1000, mode=ResetMode.FENCED)
        assert result.modes == {"broker-a": ResetMode.FENCED, "broker-b": ResetMode.FENCED}
        classic = await stage.run(f"consumerProgress -g {GROUP}")
        assert classic


@played()
async def test_mode_classic_writes_the_offsets_of_an_offline_group(stage: SimStage) -> None:
    await consume_and_leave(stage)
    lines = await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000 --mode classic")
    assert "consumerGroup[" in lines[0]
    assert "mode[" not in lines[0]
    assert record(stage, Q0) == (0, 0)


@pytest.mark.parametrize("mode", [ResetMode.CLASSIC, ResetMode.SERVER])
@played()
async def test_after_a_fenced_reset_other_modes_and_direct_writes_are_refused_with_advice(
    stage: SimStage, mode: ResetMode
) -> None:
    await consume_and_leave(stage)
    admin = await stage.admin()
    await admin.resets.reset(TOPIC, GROUP, 1000, mode=ResetMode.FENCED)
    with pytest.raises(ResponseError, match="use --mode fenced"):
        await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s -1 --mode {mode}")
    with pytest.raises(ResponseError, match="resetMode=fenced") as refused:
        await admin.resets.reset(TOPIC, GROUP, -1, write=True)
    assert refused.value.code == ResponseCode.OFFSET_FENCED
    assert record(stage, Q0) == (0, 1)


@played()
async def test_without_force_a_fenced_reset_moves_back_only(stage: SimStage) -> None:
    await consume_and_leave(stage)
    line = f"-g {GROUP} -t {TOPIC} -f false --mode fenced"
    await stage.run(f"skipAccumulatedMessage {line}")
    assert record(stage, Q0) == (3, 0)
    await stage.run(f"resetOffsetByTime -s 1000 {line}")
    assert record(stage, Q0) == (0, 1)


# One queue.


@played()
async def test_one_queue_is_reset_to_an_offset_also_to_0(stage: SimStage) -> None:
    await consume_and_leave(stage)
    address = stage.brokers["broker-a"].address
    line = f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s -1 -b {address} --mode fenced"
    lines = await stage.run(f"{line} -q 1 -o 2")
    assert lines[1:] == [HEADER, ONLINE % ("broker-a", 1, 2)]
    assert lines[0].endswith("mode[fenced]")
    await stage.run(f"{line} -q 0 -o 0")
    assert (record(stage, Q0), record(stage, Q1)) == ((0, 1), (2, 1))
    await stage.run(f"{line} -q 0")
    assert record(stage, Q0) == (3, 2)


@pytest.mark.parametrize(
    ("words", "expected"),
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
@played()
async def test_an_invalid_reset_of_one_queue_resets_nothing(
    stage: SimStage, words: str, expected: str
) -> None:
    await consume_and_leave(stage)
    with pytest.raises((ClientError, ResponseError), match=expected):
        await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0 {words}")
    assert record(stage, Q0) == (3, 0)


# Brokers that are not RewindMQ's.


class ForeignBroker:
    """Handles INVOKE_BROKER_TO_RESET_OFFSET (222) with a fixed mode in the response, or without a mode."""

    def __init__(self, mode: ResetMode | None) -> None:
        self.mode = mode
        self.headers: list[ResetOffsetRequestHeader] = []

    def handle(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        self.headers.append(request.decode_header(ResetOffsetRequestHeader))
        header = None if self.mode is None else InvokeBrokerToResetOffsetResponseHeader(self.mode)
        return RemotingCommand(ResponseCode.SUCCESS, header, ResetOffsetBody({Q0: 0}))


@pytest.mark.parametrize(
    ("named_mode", "expected"),
    [
        (None, "broker-b was asked to reset in mode fenced, but its response names no mode"),
        (
            ResetMode.SERVER,
            "broker-b was asked to reset in mode fenced, but its response names mode server",
        ),
    ],
)
@played()
async def test_a_broker_that_used_another_mode_or_names_none_is_an_error(
    stage: SimStage, named_mode: ResetMode | None, expected: str
) -> None:
    await consume_and_leave(stage)
    foreign = ForeignBroker(named_mode)
    await start_mute_broker(stage, "broker-b", reset=foreign.handle)
    admin = await stage.admin()
    with pytest.raises(ClientError, match=expected) as refused:
        await admin.resets.reset(TOPIC, GROUP, 0, mode=ResetMode.FENCED)
    assert "the group was reset there in another way" in str(refused.value)
    assert refused.value.__notes__ == ["already reset: broker-a"]
    assert foreign.headers[0].reset_mode is ResetMode.FENCED


@played()
async def test_a_broker_that_names_no_mode_is_accepted_if_no_mode_was_chosen(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        await start_mute_broker(stage, "broker-b", reset=ForeignBroker(None).handle)
        result = await (await stage.admin()).resets.reset(TOPIC, GROUP, 0)
        assert result.modes == {"broker-a": ResetMode.CLASSIC, "broker-b": None}


@played()
async def test_no_reset_of_one_queue_is_sent_to_a_broker_that_would_reset_the_whole_topic(
    stage: SimStage,
) -> None:
    await consume_and_leave(stage)
    foreign = ForeignBroker(None)
    await start_mute_broker(stage, "broker-b", reset=foreign.handle)
    with pytest.raises(ClientError, match="does not know reset modes"):
        await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 0 -b 10.0.1.99:10911 -q 0 -o 1")
    assert foreign.headers == []


# The list of fenced commits.


FENCED = "%-23s  %-20s  %-24s  %-24s  %-5s  %-12s  %-7s  %-12s  %-14s  %-4s  %-36s  %s"
FENCED_HEADER = FENCED % (
    *("#Time", "#Broker", "#Group", "#Topic", "#QID", "#Offset", "#Epoch", "#Stored", "#Stored Epoch"),
    *("#By", "#Client", "#Reason"),
)


async def two_fenced_commits(stage: SimStage) -> str:
    """Have brokers fence a direct write and the commits of a running consumer; return its client id."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(3, TOPIC)
    async with new_consumer(stage) as consumer:
        await stage.world.sleep(20.5)
        admin = await stage.admin()
        await admin.resets.reset(TOPIC, GROUP, 1000, mode=ResetMode.FENCED)
        with pytest.raises(ResponseError, match="not stored"):
            await admin.resets.reset(TOPIC, GROUP, -1, write=True)
        # The consumer's next 5 s commit has the offset from before the reset.
        await stage.world.sleep(6)
        return consumer.client_id


@played(brokers=2)
async def test_fenced_commits_of_all_brokers_are_printed_as_a_table(stage: SimStage) -> None:
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
    assert await stage.run("fencedCommits -g unknown") == nothing
    assert await stage.run(f"fencedCommits -g {GROUP} -t nothing") == nothing


@played(brokers=2)
async def test_fenced_commits_of_one_broker_and_from_python(stage: SimStage) -> None:
    await two_fenced_commits(stage)
    admin = await stage.admin()
    address = stage.brokers["broker-b"].address
    at_b = await admin.resets.fenced_commits(GROUP, TOPIC, address)
    everywhere = await admin.resets.fenced_commits()
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


@played()
async def test_a_broker_that_refuses_the_list_is_named(stage: SimStage) -> None:
    await start_mute_broker(stage, "broker-b")
    with pytest.raises(ResponseError) as refused:
        await stage.run("fencedCommits")
    assert refused.value.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert refused.value.__notes__ == ["from broker-b"]


# Running consumers.


@pytest.mark.parametrize("mode", [ResetMode.SERVER, ResetMode.FENCED])
@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_running_consumers_of_every_release_replay_and_commit_after_a_reset(
    stage: SimStage, profile: Profile, mode: ResetMode
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(10, TOPIC, gap=0.1)
    async with new_consumer(stage):
        await stage.world.sleep(30)
        assert stage.stored_offset(Q0, GROUP) == 10
        stage.consumed.clear()
        await stage.run(f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s 1000 --mode {mode}")
        # After PULL_OFFSET_MOVED (21) a client of 4.x waits 10 s, then for its next rebalance.
        await stage.world.sleep(60)
        assert stage.consumed == [(Q0, offset) for offset in range(10)]
        assert stage.stored_offset(Q0, GROUP) == 10
        await stage.send(2, TOPIC)
        await stage.world.sleep(20)
        assert stage.stored_offset(Q0, GROUP) == 12
    # Only commits that the consumers sent before they took the queue over again are fenced.
    admin = await stage.admin()
    fenced = (await admin.resets.fenced_commits())["broker-a"].commits
    assert all(commit.epoch is None and commit.stored_offset == 0 for commit in fenced)


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_a_consumer_without_epochs_goes_on_after_a_broker_restart(
    stage: SimStage, profile: Profile
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(10, TOPIC, gap=0.1)
    async with new_consumer(stage):
        await stage.world.sleep(30)
        await stage.run(f"skipAccumulatedMessage -g {GROUP} -t {TOPIC} --mode fenced")
        await stage.world.sleep(60)
        await stage.restart_broker()
        await stage.world.sleep(90)
        await stage.send(3, TOPIC)
        await stage.world.sleep(60)
        assert record(stage, Q0) == (13, 1)
