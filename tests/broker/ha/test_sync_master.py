"""SYNC_MASTER: a send returns when a slave has the message (RocketMQ 4.9.4 GroupTransferService)."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerRole
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.ha_frame import ReportDecoder, TransferDecoder, encode_report
from rewindmq.protocol.remoting.runtime import Runtime
from tests.broker.ha.test_replication import Pair
from tests.support.fixtures import simulated
from tests.support.stage import ServerStage, SimStage

# Every host of the simulated world, so that a scripted slave counts.
ANY_HOST = "10.0.0.0/8"


class ScriptedSlave(asyncio.Protocol):
    """A slave that reports only what the test sends."""

    def __init__(self) -> None:
        self.received = b""
        self.decoder = TransferDecoder()
        self.position = 0
        self.is_closed = False
        self._came = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        for transfer in self.decoder.receive(data):
            self.position = transfer.position + len(transfer.data)
        self._came.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True

    async def receive(self, end: int) -> None:
        """Wait until it has the log up to ``end``."""
        while self.position < end:
            self._came.clear()
            await self._came.wait()

    def report(self, position: int | None = None) -> None:
        self.transport.write(encode_report(self.position if position is None else position))


async def scripted(stage: ServerStage, broker: Broker, runtime: Runtime | None = None) -> ScriptedSlave:
    """A slave on the stage's own host, unless ``runtime`` is another host's."""
    network = (runtime or stage.runtime).network
    host = broker.address.rpartition(":")[0]
    _, slave = await network.connect(ScriptedSlave, host, broker.context.replication.master.port)
    assert isinstance(slave, ScriptedSlave)
    return slave


@pytest.mark.parametrize("flush", list(FlushDiskType))
@simulated(brokers=0)
async def test_a_send_returns_when_the_slave_has_the_message(stage: SimStage, flush: FlushDiskType) -> None:
    pair = Pair(stage, store={"flush_disk_type": flush})
    await pair.start(master={"broker_role": BrokerRole.SYNC_MASTER})
    await pair.at_master.create_topic()
    await stage.at(20)
    for _ in range(5):
        assert (await pair.at_master.send()).code == ResponseCode.SUCCESS
        at_master, at_slave = pair.logs()
        assert at_master == at_slave


@simulated(brokers=0)
async def test_no_slave_is_11_and_the_message_is_stored(stage: SimStage) -> None:
    await stage.start_broker(broker_role=BrokerRole.SYNC_MASTER)
    peer = stage.peer()
    answer = await peer.send()
    assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE
    assert (await peer.pull(0)).code == ResponseCode.SUCCESS


@simulated(brokers=0)
async def test_a_slave_too_far_behind_is_11(stage: SimStage) -> None:
    broker = await stage.start_broker(
        broker_role=BrokerRole.SYNC_MASTER,
        ha_slave_fallbehind_max=5_000,
        slave_timeout=1_000,
        ha_allowed_addresses=ANY_HOST,
    )
    slave = await scripted(stage, broker)
    slave.report(0)
    await stage.at(1)
    peer = stage.peer()
    assert (await peer.send(body=b"x" * 4_000)).code == ResponseCode.FLUSH_SLAVE_TIMEOUT
    assert (await peer.send(body=b"x" * 4_000)).code == ResponseCode.SLAVE_NOT_AVAILABLE


@simulated(brokers=0)
async def test_a_late_slave_is_12_after_slaveTimeout(stage: SimStage) -> None:
    """The send fails after 3 s, but is stored; the next send that the slave confirms succeeds."""
    broker = await stage.start_broker(broker_role=BrokerRole.SYNC_MASTER, ha_allowed_addresses=ANY_HOST)
    slave = await scripted(stage, broker)
    slave.report(0)
    peer = stage.peer()
    await stage.at(1)
    answer = await peer.send()
    assert answer.code == ResponseCode.FLUSH_SLAVE_TIMEOUT
    assert stage.runtime.clock.monotonic() == pytest.approx(4.0, abs=0.05)
    sending = asyncio.ensure_future(peer.send())
    await stage.at(5)
    assert not sending.done()
    slave.report()
    assert (await sending).code == ResponseCode.SUCCESS


@simulated(brokers=0)
async def test_a_message_that_does_not_wait_gets_its_response_at_once(stage: SimStage) -> None:
    await stage.start_broker(broker_role=BrokerRole.SYNC_MASTER)
    answer = await stage.peer().send(properties={"WAIT": "false"})
    assert answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 64, encode_report(-5), encode_report(1 << 60), b"GET / HTTP/1.1\r\n\r\n"],
    ids=["junk", "negative", "absurd", "http"],
)
@simulated(brokers=0)
async def test_a_peer_that_is_not_a_slave_is_closed_and_the_master_goes_on(
    stage: SimStage, data: bytes
) -> None:
    pair = await Pair(stage, ha_allowed_addresses=ANY_HOST).start()
    stranger = await scripted(stage, pair.master)
    stranger.transport.write(data)
    await stage.at(1)
    assert stranger.is_closed
    await pair.at_master.fill(3)
    await stage.at(20)
    await pair.caught_up()


@simulated(brokers=0)
async def test_a_slave_that_falls_silent_is_closed_after_haHousekeepingInterval(stage: SimStage) -> None:
    broker = await stage.start_broker(ha_allowed_addresses=ANY_HOST)
    slave = await scripted(stage, broker)
    slave.report(0)
    await stage.at(19)
    # A part of a report does not count.
    slave.transport.write(b"\0")
    assert not slave.is_closed
    await stage.at(21)
    assert slave.is_closed


@simulated(brokers=0)
async def test_heartbeats_go_both_ways(stage: SimStage) -> None:
    """Size 0 every 5 s from the master, its position from the slave: neither gives the other up."""
    pair = await Pair(stage).start()
    await pair.at_master.fill(1)
    await stage.at(15)
    (connection,) = pair.master.context.replication.master._slaves
    await stage.at(300)
    assert list(pair.master.context.replication.master._slaves) == [connection]


@simulated(brokers=0)
async def test_more_slaves_than_64_are_closed(stage: SimStage) -> None:
    broker = await stage.start_broker(ha_allowed_addresses=ANY_HOST)
    slaves = []
    for _ in range(66):
        slaves.append(await scripted(stage, broker))
        slaves[-1].report(0)
    await stage.at(1)
    assert [slave.is_closed for slave in slaves] == [False] * 64 + [True] * 2


class ScriptedMaster(asyncio.Protocol):
    """A master's log with the state that the test sets."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.reports: list[int] = []
        self.decoder = ReportDecoder()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.answer)

    def data_received(self, data: bytes) -> None:
        position = self.decoder.receive(data)
        assert position is not None
        self.reports.append(position)


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff" * 64,
        b"\x00" * 8 + b"\x7f\xff\xff\xff",
        b"\x00" * 8 + b"\x00\x00\x00\x08" + b"\xff" * 8,
        (5).to_bytes(8, "big") + b"\x00\x00\x00\x08" + b"\xff" * 8,
    ],
    ids=["junk", "huge", "no record", "no segment"],
)
@simulated(brokers=0)
async def test_a_slave_survives_a_master_that_is_none(stage: SimStage, answer: bytes) -> None:
    made: list[ScriptedMaster] = []

    def factory() -> ScriptedMaster:
        made.append(ScriptedMaster(answer))
        return made[-1]

    listener = await stage.runtime.network.listen(factory, "10.0.9.9", 0)
    slave = await stage.start_broker(
        broker_role=BrokerRole.SLAVE, broker_id=1, ha_master_address=f"10.0.9.9:{listener.port}"
    )
    await stage.at(12)
    # It tries again every 5 s, and nothing came into its store.
    assert len(made) == 3
    assert slave.context.store.max_commit_log_offset == 0
