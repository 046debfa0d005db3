"""Consumers of a master with a slave: where they pull, and where they commit."""

from __future__ import annotations

from typing import Any

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerRole
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage


async def start_slave(stage: SimStage, **keys: Any) -> Broker:
    return await stage.start_broker(
        broker_id=1,
        broker_role=BrokerRole.SLAVE,
        store_path_root_dir=str(stage.root / "slave"),
        **keys,
    )


@played()
async def test_a_consumer_reads_on_from_the_slave_when_its_master_is_gone(stage: SimStage) -> None:
    """Clients of 4.9.4 pull and commit at the lowest broker id of the route."""
    await stage.create_topic(TOPIC, 2)
    master = stage.brokers["broker-a"]
    slave = await start_slave(stage)
    await stage.send(3, TOPIC)
    await stage.world.sleep(15)
    async with new_consumer(stage):
        await stage.world.sleep(30)
        assert len(stage.consumed) == 6
        await master.close()
        await stage.world.sleep(60)
        assert slave.context.clients.consumers.find(GROUP) is not None
    assert slave.context.offsets.table.offsets_of(GROUP, TOPIC) == {0: 3, 1: 3}


@played(slave_read_enable=True)
async def test_a_consumer_reads_from_the_slave_if_the_group_settings_name_it(stage: SimStage) -> None:
    """slaveReadEnable is on, and the group's brokerId is the slave's."""
    master = stage.brokers["broker-a"]
    slave = await start_slave(stage, slave_read_enable=True)
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    await stage.world.sleep(15)
    # A master whose messages exceed its memory suggests the same with whichBrokerWhenConsumeSlowly.
    master.context.tables.groups.update(SubscriptionGroupConfig(GROUP, broker_id=1))
    await stage.world.sleep(15)
    async with new_consumer(stage):
        await stage.world.sleep(60)
        await stage.send(3, TOPIC)
        await stage.world.sleep(30)
    assert len(stage.consumed) == 12
    assert slave.context.stats.get_total == 6
    assert master.context.offsets.table.offsets_of(GROUP, TOPIC) == {0: 6, 1: 6}


@played()
async def test_a_groups_settings_are_shown_once_for_master_and_slave(stage: SimStage) -> None:
    """``GetConsumerConfigSubCommand`` asks one broker of each name, the master if there is one."""
    await start_slave(stage)
    await stage.run("updateSubGroup -c DefaultCluster -g G1 -r 3")
    await stage.world.sleep(30)
    shown = await stage.run("getConsumerConfig -g G1")
    assert [line for line in shown if "retryMaxTimes" in line] == [f"{'retryMaxTimes':<40}=  3"]
