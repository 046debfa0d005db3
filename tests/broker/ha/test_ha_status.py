"""GET_BROKER_HA_STATUS (907) and RESET_MASTER_FLUSH_OFFSET (908) at masters and slaves."""

from __future__ import annotations

import pytest

from rewindmq.broker.ha.transfer_rate import TransferRate
from rewindmq.protocol.body.ha import HAClientRuntimeInfo, HARuntimeInfo
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.profile import Profile
from tests.broker.ha.test_replication import Pair
from tests.broker.ha.test_sync_master import scripted
from tests.support.answers import remark_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage


async def status(peer: Peer) -> HARuntimeInfo:
    return decode_body((await peer.ask(RequestCode.GET_BROKER_HA_STATUS)).require_success(), HARuntimeInfo)


@simulated(brokers=0)
async def test_master_and_slave_report_the_same_connection(stage: SimStage) -> None:
    pair = await Pair(stage, profile=Profile.V53).start()
    await pair.at_master.fill(10)
    await stage.at(60)
    await pair.caught_up()
    end, _ = pair.logs()
    at_master, at_slave = await status(pair.at_master), await status(pair.at_slave)
    (slave,) = at_master.ha_connection_info
    assert (at_master.master, at_master.master_commit_log_max_offset) == (True, end)
    assert (at_master.in_sync_slave_nums, slave.in_sync) == (1, True)
    assert (slave.slave_ack_offset, slave.diff, slave.transfer_from_where) == (end, 0, end)
    assert slave.addr == pair.slave.context.replication.slave.ha_client_address  # type: ignore[union-attr]
    assert at_master.ha_client_runtime_info == HAClientRuntimeInfo()
    client = at_slave.ha_client_runtime_info
    assert (at_slave.master, at_slave.ha_connection_info, client.max_offset) == (False, [], end)
    host = pair.master.address.rpartition(":")[0]
    assert client.master_addr == f"{host}:{pair.master.context.replication.master.port}"
    now = pair.master.context.runtime.clock.now_ms()
    assert now - 20_000 < client.last_read_timestamp <= now
    assert now - 20_000 < client.last_write_timestamp <= now


@simulated(brokers=0)
async def test_the_bytes_of_the_last_second_are_reported_at_both_ends(stage: SimStage) -> None:
    pair = await Pair(stage, profile=Profile.V53).start()
    await pair.at_master.create_topic()
    await stage.at(60.1)
    before, _ = pair.logs()
    await pair.at_master.send("T", b"x" * 10_000)
    sent = pair.logs()[0] - before
    await stage.at(61.1)
    at_master, at_slave = await status(pair.at_master), await status(pair.at_slave)
    (slave,) = at_master.ha_connection_info
    assert sent <= slave.transferred_byte_in_second < 2 * sent
    assert sent <= at_slave.ha_client_runtime_info.transferred_byte_in_second < 2 * sent


@simulated(brokers=0)
async def test_a_connection_whose_reports_do_not_count_is_not_in_sync(stage: SimStage) -> None:
    namesrv = await stage.start_namesrv()
    broker = await stage.start_broker(namesrv_addr=namesrv.address, profile=Profile.V53)
    peer = stage.peer(address=broker.address)
    await peer.fill(1)
    stranger = await scripted(stage, broker, broker.context.runtime)
    first = await status(peer)
    stranger.report(broker.context.store.max_commit_log_offset)
    await stage.at(30)
    then = await status(peer)
    positions = [
        (connection.slave_ack_offset, connection.in_sync)
        for info in (first, then)
        for connection in info.ha_connection_info
    ]
    assert positions[0] == (-1, False)
    assert [in_sync for _, in_sync in positions] == [False] * len(positions)
    assert then.in_sync_slave_nums == 0


@simulated(brokers=0)
async def test_a_slave_without_its_master_reports_no_connection(stage: SimStage) -> None:
    pair = await Pair(stage, profile=Profile.V53).start()
    await stage.at(20)
    await pair.master.close()
    await stage.at(40)
    client = (await status(pair.at_slave)).ha_client_runtime_info
    assert client.last_read_timestamp == 0
    assert client.transferred_byte_in_second == 0


@simulated(brokers=0)
async def test_908_is_ignored_by_a_master_and_refused_by_a_slave(stage: SimStage) -> None:
    pair = await Pair(stage, profile=Profile.V53).start()
    code = RequestCode.RESET_MASTER_FLUSH_OFFSET
    assert (await pair.at_master.ask(code, masterFlushOffset="7")).code == ResponseCode.SUCCESS
    refused = await pair.at_slave.ask(code, masterFlushOffset="7")
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert "never acts as a master" in remark_of(refused)


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
@pytest.mark.parametrize("code", [RequestCode.GET_BROKER_HA_STATUS, RequestCode.RESET_MASTER_FLUSH_OFFSET])
@simulated()
async def test_releases_before_5_do_not_know_these_requests(
    stage: SimStage, profile: Profile, code: RequestCode
) -> None:
    assert (await stage.peer().ask(code)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_a_rate_covers_the_last_whole_second() -> None:
    rate = TransferRate()
    rate.add(5, 10.0)
    rate.add(7, 10.9)
    assert rate.last_second(10.95) == 0
    assert rate.last_second(11.0) == 12
    rate.add(1, 11.5)
    assert rate.last_second(11.9) == 12
    assert rate.last_second(12.1) == 1
    assert rate.last_second(14.0) == 0
