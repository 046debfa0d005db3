"""Master and slave over RocketMQ's HA protocol, under virtual time and over real sockets."""

from __future__ import annotations

from typing import Any

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerRole
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.header.pull import PullMessageResponseHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.support.answers import body_of, present
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

ALL = (Profile.V42, Profile.V49, Profile.V53)


class Pair:
    """A name server, a master and its slave, with a client connected to each broker."""

    def __init__(self, stage: SimStage, **config: Any) -> None:
        self.stage = stage
        self.config = config

    async def start(self, master: dict[str, Any] | None = None, slave: dict[str, Any] | None = None) -> Pair:
        namesrv = await self.stage.start_namesrv()
        self.config["namesrv_addr"] = namesrv.address
        self.master = await self.stage.start_broker(**self.config, **(master or {}))
        self.at_master = self.stage.peer("c1", self.master.address)
        self.slave = await self.start_slave(**(slave or {}))
        self.at_slave = self.stage.peer("c2", self.slave.address)
        return self

    async def start_slave(self, name: str = "slave", broker_id: int = 1, **config: Any) -> Broker:
        return await self.stage.start_broker(
            broker_id=broker_id,
            broker_role=BrokerRole.SLAVE,
            store_path_root_dir=str(self.stage.root / name),
            **{**self.config, **config},
        )

    def logs(self) -> tuple[int, int]:
        """Where the two logs end."""
        return self.master.context.store.max_commit_log_offset, self.slave.context.store.max_commit_log_offset

    async def caught_up(self) -> None:
        await self.stage.runtime.timers.sleep(1.0)
        at_master, at_slave = self.logs()
        assert at_master == at_slave > 0


def header(response: RemotingCommand) -> PullMessageResponseHeader:
    return response.decode_header(PullMessageResponseHeader)


@pytest.mark.parametrize("profile", ALL)
def test_a_slave_has_log_topics_offsets_and_groups_of_its_master(
    simulate: RunScenario, profile: Profile
) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage, profile=profile, slave_read_enable=True).start()
        peer = pair.at_master
        await peer.create_topic(write=2, read=2)
        await peer.heartbeat()
        for number in range(100):
            await peer.send("T", b"%03d" % number, queue_id=number % 2)
        await peer.commit(17)
        await stage.at(20)
        await pair.caught_up()
        slave = pair.slave.context
        assert present(slave.tables.topics.find("T")).write_queue_nums == 2
        assert slave.offsets.table.query("G", "T", 0) == 17
        assert slave.tables.groups.get("G") is not None
        assert [slave.store.max_offset("T", queue) for queue in (0, 1)] == [50, 50]
        answer = await pair.at_slave.pull(0)
        assert answer.code == ResponseCode.SUCCESS
        assert body_of(answer) == body_of(await peer.pull(0))

    simulate(scenario, brokers=0)


@pytest.mark.parametrize("profile", ALL)
def test_a_slave_refuses_sends(simulate: RunScenario, profile: Profile) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage, profile=profile).start()
        await pair.at_master.create_topic()
        await stage.at(20)
        answer = await pair.at_slave.send()
        assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "messages are put to the slave" in str(answer.remark)

    simulate(scenario, brokers=0)


@simulated(brokers=0)
async def test_a_slave_of_4_x_serves_pulls_though_slaveReadEnable_is_off(stage: SimStage) -> None:
    """4.9.4 sets 20 first, and then the read's own code over it."""
    pair = await Pair(stage, profile=Profile.V49).start()
    await pair.at_master.fill(3)
    await stage.at(20)
    answer = await pair.at_slave.pull(0)
    assert (answer.code, header(answer).suggest_which_broker_id) == (0, 0)


@simulated(brokers=0)
async def test_a_slave_of_5_3_3_is_busy_unless_slaveReadEnable_is_on(stage: SimStage) -> None:
    pair = await Pair(stage, profile=Profile.V53).start()
    await pair.at_master.fill(3)
    await stage.at(20)
    answer = await pair.at_slave.pull(0)
    assert answer.code == ResponseCode.SYSTEM_BUSY
    assert "[REJECTREQUEST]" in str(answer.remark)


@pytest.mark.parametrize(
    ("profile", "offset", "code", "next_offset"),
    [
        # Nothing is corrected, and 21 becomes 20.
        (Profile.V49, 9, 20, 9),
        (Profile.V53, 9, 20, 9),
        # 5.3.3 sends consumers that keep up back to the master.
        (Profile.V49, 3, 19, 3),
        (Profile.V53, 3, 20, 3),
        (Profile.V53, 0, 0, 3),
    ],
)
def test_offsets_at_a_slave_are_not_corrected(
    simulate: RunScenario, profile: Profile, offset: int, code: int, next_offset: int
) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage, profile=profile, slave_read_enable=True).start()
        await pair.at_master.fill(3)
        await stage.at(20)
        answer = await pair.at_slave.pull(offset)
        assert (answer.code, header(answer).next_begin_offset) == (code, next_offset)

    simulate(scenario, brokers=0)


@simulated(brokers=0)
async def test_offsetCheckInSlave_corrects_them(stage: SimStage) -> None:
    pair = await Pair(stage, offset_check_in_slave=True).start()
    await pair.at_master.fill(3)
    await stage.at(20)
    assert await pair.at_slave.status(9) == (21, "OFFSET_OVERFLOW_BADLY", 3)


@pytest.mark.parametrize(("profile", "stored"), [(Profile.V42, 5), (Profile.V49, 5), (Profile.V53, 2)])
def test_a_commit_by_a_pull_at_a_slave(simulate: RunScenario, profile: Profile, stored: int) -> None:
    """docs/spec/broker.md B.7: 4.x looks at the role, 5.3.3 does not."""

    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage, profile=profile, slave_read_enable=True).start()
        await pair.at_master.fill(9)
        await pair.at_master.heartbeat()
        await pair.at_master.commit(5)
        await stage.at(14)
        await pair.at_slave.pull(0, commit=2)
        assert pair.slave.context.offsets.table.query("G", "T", 0) == stored
        await stage.at(24)
        # The next copy lies over it.
        assert pair.slave.context.offsets.table.query("G", "T", 0) == 5

    simulate(scenario, brokers=0)


@simulated(brokers=0)
async def test_a_commit_to_a_slave_is_overwritten_by_the_next_copy(stage: SimStage) -> None:
    pair = await Pair(stage).start()
    await pair.at_master.fill(9)
    await pair.at_master.commit(5)
    await stage.at(14)
    (await pair.at_slave.commit(8)).require_success()
    assert pair.slave.context.offsets.table.query("G", "T", 0) == 8
    await stage.at(24)
    assert pair.slave.context.offsets.table.query("G", "T", 0) == 5


@simulated(brokers=0)
async def test_a_consumer_far_behind_is_sent_to_the_slave(stage: SimStage) -> None:
    """whichBrokerWhenConsumeSlowly when more than 40 % of memory behind, else the group's brokerId."""
    pair = Pair(stage, slave_read_enable=True, store={"physical_memory_bytes": 100_000})
    await pair.start()
    await pair.at_master.fill(40, body=b"x" * 2_000)
    await stage.at(20)
    far, near = await pair.at_master.pull(0, count=1), await pair.at_master.pull(39)
    assert header(far).suggest_which_broker_id == 1
    assert header(near).suggest_which_broker_id == 0
    assert header(await pair.at_slave.pull(0, count=1)).suggest_which_broker_id == 1
    assert header(await pair.at_slave.pull(39)).suggest_which_broker_id == 0


@pytest.mark.scenario("D25", "v53s")
@pytest.mark.parametrize("mode", [ResetMode.SERVER, ResetMode.FENCED])
@simulated(brokers=0)
async def test_D25_a_slave_refuses_the_server_side_reset(stage: SimStage, mode: ResetMode) -> None:
    """A slave returns SYSTEM_ERROR (1) for a reset request, with RocketMQ's remark; also in fenced mode."""
    pair = await Pair(stage, profile=Profile.V53, reset_mode=mode).start()
    await pair.at_master.fill(3)
    await stage.at(20)
    answer = await pair.at_slave.reset(0)
    assert (answer.code, answer.remark) == (1, "Can not reset offset in slave broker")


@simulated(brokers=0)
async def test_a_slave_performs_a_classic_reset_from_its_copies(stage: SimStage) -> None:
    """docs/spec/nameserver.md A.6: as a master would."""
    pair = await Pair(stage).start()
    await pair.at_master.create_topic(write=1, read=1)
    await pair.at_master.fill(3)
    await pair.at_master.commit(3)
    await stage.at(20)
    await pair.at_slave.heartbeat()
    assert (await pair.at_slave.targets(0)) == {0: 0}
    assert pair.at_slave.count(RequestCode.RESET_CONSUMER_CLIENT_OFFSET) == 1


@simulated(brokers=0)
async def test_fenced_epochs_reach_the_slave_with_the_offsets(stage: SimStage) -> None:
    pair = await Pair(stage, reset_mode=ResetMode.FENCED).start()
    await pair.at_master.create_topic(write=1, read=1)
    await pair.at_master.fill(9)
    await pair.at_master.heartbeat()
    await pair.at_master.commit(9)
    (await pair.at_master.reset(0)).require_success()
    await stage.at(20)
    assert pair.slave.context.offsets.table.record("G", "T", 0) == (0, 1)


@simulated(brokers=0)
async def test_a_delayed_message_is_delivered_by_the_master_only(stage: SimStage) -> None:
    pair = await Pair(stage).start()
    await pair.at_master.create_topic(write=1, read=1)
    await stage.at(15)
    (await pair.at_master.send(properties={"DELAY": "1"})).require_success()
    await stage.at(40)
    await pair.caught_up()
    assert pair.slave.context.store.max_offset("T", 0) == 1
    assert pair.slave.context.delays.offsets.table == {1: 1}


@simulated(brokers=0)
async def test_consumers_go_on_from_the_slave_when_the_master_is_gone(stage: SimStage) -> None:
    """The slave serves reads and commits; it does not become a master."""
    pair = await Pair(stage).start()
    await pair.at_master.fill(5)
    await stage.at(20)
    await pair.master.close()
    await stage.at(60)
    assert (await pair.at_slave.pull(0)).code == 0
    (await pair.at_slave.commit(5)).require_success()
    await stage.at(120)
    assert await pair.at_slave.stored_offset() == 5


@simulated(brokers=0)
async def test_a_slave_follows_again_after_its_master_or_itself_was_away(stage: SimStage) -> None:
    pair = await Pair(stage).start(master={"ha_listen_port": 20_912})
    await pair.at_master.fill(50, body=b"x" * 500)
    await stage.at(10)
    await pair.slave.close()
    await pair.at_master.fill(50, body=b"y" * 500)
    pair.slave = await pair.start_slave()
    await stage.at(20)
    await pair.caught_up()
    await pair.master.close()
    await stage.at(30)
    pair.master = await stage.start_broker(**pair.config, ha_listen_port=20_912)
    await stage.peer("c3", pair.master.address).fill(50, body=b"z" * 500)
    await stage.at(60)
    await pair.caught_up()
    assert pair.slave.context.store.max_offset("T", 0) == 150


@simulated(brokers=0)
async def test_two_slaves_have_the_same(stage: SimStage) -> None:
    pair = await Pair(stage).start()
    second = await pair.start_slave("second", 2)
    await pair.at_master.fill(50, body=b"x" * 500)
    await stage.at(20)
    await pair.caught_up()
    assert second.context.store.max_commit_log_offset == pair.logs()[0]


def test_a_slave_with_a_newer_log_is_not_cut_and_copies_nothing(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage).start()
        await pair.at_master.fill(5)
        await stage.at(10)
        end = pair.logs()[1]
        await pair.slave.close()
        await pair.master.close()
        # The master comes back without its disk.
        pair.master = await stage.start_broker(
            **pair.config, store_path_root_dir=str(stage.root / "replaced")
        )
        pair.slave = await pair.start_slave()
        await stage.at(60)
        peer = stage.peer("c3", pair.master.address)
        await peer.fill(1)
        await stage.at(90)
        assert pair.logs()[1] == end > pair.logs()[0]

    simulate(scenario, brokers=0)
    told = [line for line in caplog.messages if "the master has lost messages that are still here" in line]
    assert len(told) == 1


@pytest.mark.parametrize(("profile", "kept"), [(Profile.V49, 17), (Profile.V53, -1)])
def test_offsets_of_a_deleted_topic_leave_the_slave_where_they_leave_the_master(
    simulate: RunScenario, profile: Profile, kept: int
) -> None:
    """Else a slave that becomes a master would skip messages of a new topic of that name."""

    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage, profile=profile).start()
        peer = pair.at_master
        await peer.create_topic()
        await peer.heartbeat()
        await peer.commit(17)
        await stage.at(20)
        assert pair.slave.context.offsets.table.query("G", "T", 0) == 17
        (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader("T"))).require_success()
        await stage.at(40)
        assert pair.master.context.offsets.table.query("G", "T", 0) == kept
        assert pair.slave.context.offsets.table.query("G", "T", 0) == kept

    simulate(scenario, brokers=0)
