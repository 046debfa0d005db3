"""Who may read the log at the HA port, and whose reports count."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig, BrokerRole
from rewindmq.broker.ha.access import RegisteredSlave, connections_of, may_read
from rewindmq.broker.ha.connection import FIRST_REPORT_SECONDS
from rewindmq.broker.ha.master import CHECK_SECONDS
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConfigError
from rewindmq.protocol.ha_frame import encode_report
from rewindmq.protocol.header.namesrv import UnRegisterBrokerRequestHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.server import RemotingServer
from tests.broker.ha.test_replication import Pair
from tests.broker.ha.test_sync_master import ScriptedSlave, scripted
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

SYNC: dict[str, Any] = {"broker_role": BrokerRole.SYNC_MASTER}
OTHER_HOST = "10.0.4.1"
OTHER_ADDRESS = f"{OTHER_HOST}:10911"


async def pair_of(stage: SimStage, **config: Any) -> Pair:
    """A SYNC_MASTER with a message, and its slave, which has it."""
    pair = await Pair(stage, **config).start(master=SYNC)
    await stage.at(5)
    await pair.at_master.fill(1)
    return pair


class OtherSlave:
    """A registered slave that does not name its connection, as RocketMQ's; the test reports for it."""

    def __init__(self, stage: SimStage, master: Broker) -> None:
        self.stage = stage
        self.master = master
        self.runtime: Runtime = stage.new_runtime(OTHER_HOST)
        self.namesrv = Peer(self.runtime, stage.namesrv)

    async def start(self) -> ScriptedSlave:
        server = RemotingServer(self.runtime, {RequestCode.GET_BROKER_RUNTIME_INFO: _rocketmq_info})
        await server.start(OTHER_HOST, 10_911)
        self.stage.at_exit(server.close)
        self.stage.at_exit(self.namesrv.client.close)
        (await self.namesrv.register(OTHER_ADDRESS, broker_id=1)).require_success()
        slave = await scripted(self.stage, self.master, self.runtime)
        slave.report(0)
        return slave

    async def unregister(self) -> None:
        header = UnRegisterBrokerRequestHeader(
            broker_name="broker-a", broker_addr=OTHER_ADDRESS, cluster_name="DefaultCluster", broker_id=1
        )
        (await self.namesrv.ask(RequestCode.UNREGISTER_BROKER, header)).require_success()


def _rocketmq_info(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS, body=KVTable({"commitLogMaxOffset": "0"}))


async def master_alone(stage: SimStage) -> Broker:
    namesrv = await stage.start_namesrv()
    return await stage.start_broker(namesrv_addr=namesrv.address, slave_timeout=1_000, **SYNC)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_stranger_reads_nothing_and_is_closed_with_one_log_line(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await pair_of(stage)
        caplog.clear()
        stranger = await scripted(stage, pair.master)
        stranger.report(0)
        await stage.at(8)
        assert stranger.is_closed
        assert stranger.position == 0

    simulate(scenario, brokers=0)
    (line,) = warnings(caplog)
    assert "no slave of this broker is registered" in line
    assert "haAllowedAddresses" in line


def test_without_a_name_server_a_stranger_is_closed_at_once(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        stranger = await scripted(stage, await stage.start_broker())
        await stage.at(1)
        assert stranger.is_closed

    simulate(scenario, brokers=0)
    (line,) = warnings(caplog)
    assert "haAllowedAddresses does not allow it" in line


@simulated(brokers=0)
async def test_haAllowedAddresses_replaces_the_registration(stage: SimStage) -> None:
    broker = await stage.start_broker(ha_allowed_addresses="10.0.9.9; 10.7.0.0/16", **SYNC)
    slave = await scripted(stage, broker)
    slave.report(0)
    stranger = await scripted(stage, broker, stage.new_runtime("10.0.9.8"))
    await stage.at(1)
    assert stranger.is_closed
    sending = asyncio.ensure_future(stage.peer().send())
    await stage.at(2)
    slave.report()
    assert (await sending).code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    "text", ["", " ; ", "localhost", "10.0.0.1:10912", "10.0.0.0/33", "10.0.0.1,10.0.0.2"]
)
def test_haAllowedAddresses_must_be_addresses_and_networks(text: str) -> None:
    with pytest.raises(ConfigError, match="haAllowedAddresses"):
        BrokerConfig(ha_allowed_addresses=text)


@simulated(brokers=0)
async def test_a_process_on_a_slaves_host_reads_but_does_not_count(stage: SimStage) -> None:
    """It acknowledges everything; a send still fails, because the slave itself does not follow."""
    pair = await pair_of(stage)
    assert (await pair.at_master.send()).code == ResponseCode.SUCCESS
    process = await scripted(stage, pair.master, stage._runtimes["broker-a"])
    assert pair.slave.context.replication.slave is not None
    await pair.slave.context.replication.slave.close()
    process.report(0)
    await stage.at(8)
    end = pair.master.context.store.max_commit_log_offset
    assert process.position == end
    process.report(end)
    await stage.at(9)
    assert (await pair.at_master.send()).code == ResponseCode.SLAVE_NOT_AVAILABLE


@simulated(brokers=0)
async def test_a_slave_of_rocketmq_counts_by_its_host(stage: SimStage) -> None:
    master = await master_alone(stage)
    slave = await OtherSlave(stage, master).start()
    await stage.at(1)
    sending = asyncio.ensure_future(stage.peer().send())
    await stage.at(1.5)
    slave.report()
    assert (await sending).code == ResponseCode.SUCCESS


@simulated(brokers=0)
async def test_a_slave_counts_while_it_is_registered(stage: SimStage) -> None:
    """Three look-ups without it are forgiven: its name server may have just started."""
    master = await master_alone(stage)
    other = OtherSlave(stage, master)
    slave = await other.start()
    peer = stage.peer()
    keep = asyncio.ensure_future(_report_for_ever(stage, slave))
    await stage.at(1)
    assert (await peer.send()).code == ResponseCode.SUCCESS
    await other.unregister()
    await stage.at(3 * CHECK_SECONDS + 5)
    assert (await peer.send()).code == ResponseCode.SUCCESS
    await stage.at(4 * CHECK_SECONDS + 5)
    assert (await peer.send()).code == ResponseCode.SLAVE_NOT_AVAILABLE
    (await other.namesrv.register(OTHER_ADDRESS, broker_id=1)).require_success()
    await stage.at(5 * CHECK_SECONDS + 5)
    assert (await peer.send()).code == ResponseCode.SUCCESS
    keep.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await keep


async def _report_for_ever(stage: SimStage, slave: ScriptedSlave) -> None:
    while True:
        await stage.runtime.timers.sleep(0.1)
        slave.report()


@simulated(brokers=0)
async def test_a_slave_counts_while_its_name_server_is_away_or_new(stage: SimStage) -> None:
    pair = await pair_of(stage)
    await stage.stop_namesrv()
    await stage.at(100)
    assert (await pair.at_master.send()).code == ResponseCode.SUCCESS
    # The slave's new connection is recognized, too.
    stage.world.sever(*(broker.address.rpartition(":")[0] for broker in (pair.master, pair.slave)))
    await stage.at(120)
    assert (await pair.at_master.send()).code == ResponseCode.SUCCESS
    await stage.start_namesrv()
    for second in range(125, 225, 5):
        await stage.at(second)
        assert (await pair.at_master.send()).code == ResponseCode.SUCCESS


@pytest.mark.parametrize("data", [b"", b"\0" * 7], ids=["nothing", "a part of a report"])
@simulated(brokers=0)
async def test_a_connection_without_a_report_is_closed_in_time(stage: SimStage, data: bytes) -> None:
    stranger = await scripted(stage, await master_alone(stage))
    stranger.transport.write(data)
    await stage.at(FIRST_REPORT_SECONDS - 0.1)
    assert not stranger.is_closed
    await stage.at(FIRST_REPORT_SECONDS + 0.1)
    assert stranger.is_closed


@pytest.mark.parametrize("reports", [False, True], ids=["silent", "reporting"])
@simulated(brokers=0)
async def test_a_slave_gets_in_when_strangers_hold_all_connections(stage: SimStage, reports: bool) -> None:
    namesrv = await stage.start_namesrv()
    pair = Pair(stage, namesrv_addr=namesrv.address)
    pair.master = await stage.start_broker(**pair.config, **SYNC)
    pair.at_master = stage.peer("c1", pair.master.address)
    # On the host of a registered slave, so that they may read.
    other = OtherSlave(stage, pair.master)
    await other.start()
    for _ in range(64):
        stranger = await scripted(stage, pair.master, other.runtime)
        if reports:
            stranger.transport.write(encode_report(0))
    pair.slave = await pair.start_slave(broker_id=2)
    await stage.at(3)
    assert (await pair.at_master.send()).code == ResponseCode.SUCCESS


@simulated(brokers=0)
async def test_a_slave_that_reports_more_than_it_was_sent_is_closed(stage: SimStage) -> None:
    broker = await stage.start_broker(ha_allowed_addresses="10.0.9.9", **SYNC)
    peer = stage.peer()
    slave = await scripted(stage, broker)
    slave.report(0)
    await stage.at(1)
    sending = asyncio.ensure_future(peer.send(body=b"x" * 1_000))
    slave.report(broker.context.store.max_commit_log_offset + 1)
    await stage.at(2)
    assert slave.is_closed
    assert (await sending).code in (ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE)


async def test_on_one_machine_only_the_slave_itself_counts(stage: ServerStage) -> None:
    """Real sockets: a stranger that reports, and 64 silent connections, before and beside the slave."""
    namesrv = await stage.start_namesrv()
    master = await stage.start_broker(namesrv_addr=namesrv.address, **SYNC)
    stranger = await scripted(stage, master)
    stranger.report(0)
    peer = stage.peer("c1", master.address)
    await peer.create_topic()
    await peer.send()
    await asyncio.wait_for(stranger.receive(master.context.store.max_commit_log_offset), 60)
    stranger.report()
    assert (await peer.send()).code == ResponseCode.SLAVE_NOT_AVAILABLE
    silent = [await scripted(stage, master) for _ in range(64)]
    slave = await stage.start_broker(
        broker_id=1,
        broker_role=BrokerRole.SLAVE,
        store_path_root_dir=str(stage.root / "slave"),
        namesrv_addr=namesrv.address,
    )
    async with asyncio.timeout(60):
        while (await peer.send()).code != ResponseCode.SUCCESS:
            pass
    assert slave.context.store.max_commit_log_offset == master.context.store.max_commit_log_offset
    for connection in (stranger, *silent):
        connection.transport.close()


def test_a_slave_that_names_no_connection_has_the_newest_of_its_host() -> None:
    slaves = [
        RegisteredSlave("10.0.0.1:10911", None),
        RegisteredSlave("10.0.0.1:10921", None),
        RegisteredSlave("10.0.0.1:10931", "10.0.0.1:9"),
        RegisteredSlave("10.0.0.2:10911", ""),
        RegisteredSlave("slave.example:10911", None),
    ]
    addresses = [f"10.0.0.1:{port}" for port in (5, 9, 6, 7)] + ["10.0.0.2:5", "10.0.0.3:5"]
    assert connections_of(slaves, addresses) == {"10.0.0.1:6", "10.0.0.1:7", "10.0.0.1:9"}
    readers = [
        address for address in (*addresses, "127.0.0.1:1", "[::1]:1", "unknown") if may_read(address, slaves)
    ]
    assert readers == [*addresses[:5], "127.0.0.1:1", "[::1]:1"]
