"""A slave delivers no timer messages, until it is the master (docs/spec/timers.md 7)."""

from __future__ import annotations

from collections import Counter
from typing import cast

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerRole
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.timer.box import stored
from tests.support.fixtures import simulated
from tests.support.stage import SimStage


async def start_slave(stage: SimStage, namesrv_addr: str, role: BrokerRole) -> Broker:
    return await stage.start_broker(
        broker_id=1 if role is BrokerRole.SLAVE else 0,
        broker_role=role,
        store_path_root_dir=str(stage.root / "slave"),
        profile=Profile.V53,
        namesrv_addr=namesrv_addr,
    )


@simulated(brokers=0)
async def test_a_promoted_slave_continues_where_its_master_was(stage: SimStage) -> None:
    """It loses no message, and delivers none again."""
    namesrv = await stage.start_namesrv()
    master = await stage.start_broker(profile=Profile.V53, namesrv_addr=namesrv.address)
    peer = stage.peer("c1", master.address)
    slave = await start_slave(stage, namesrv.address, BrokerRole.SLAVE)
    await stage.at(5.0)
    for number in range(40):
        delay = 3 if number % 2 else 60 + number % 3
        (await peer.send(body=b"%d" % number, properties={"TIMER_DELAY_SEC": str(delay)})).require_success()
    await stage.at(40.0)
    assert len(stored(slave)) == 20
    body = cast("bytes", (await peer.ask(RequestCode.GET_TIMER_CHECK_POINT)).body)
    assert len(body) == 56
    assert int.from_bytes(body[24:32], "big") == 40
    await slave.close()
    await master.close()
    promoted = await start_slave(stage, namesrv.address, BrokerRole.ASYNC_MASTER)
    await stage.at(75.0)
    messages = stored(promoted)
    assert Counter(message.body for message in messages) == {b"%d" % number: 1 for number in range(40)}
    for message in messages[20:]:
        assert message.store_timestamp >= EPOCH_MS + 65_000
