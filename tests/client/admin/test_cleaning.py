"""deleteTopic, cleanUnusedTopic, cleanExpiredCQ, deleteExpiredCommitLog."""

from __future__ import annotations

import pytest

from rewindmq.protocol.errors import ClientError, ResponseError
from tests.client.admin.support import GROUP, TOPIC
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage


def test_delete_topic_deletes_at_masters_and_name_servers_but_keeps_offsets(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        await stage.send(2, TOPIC)
        stage.brokers["broker-a"].context.offsets.commit(GROUP, TOPIC, 0, 1)
        assert await stage.run(f"deleteTopic -c DefaultCluster -t {TOPIC}") == [
            f"delete topic [{TOPIC}] from cluster [DefaultCluster] success."
        ]
        for broker in stage.brokers.values():
            assert broker.context.topics.find(TOPIC) is None
            assert broker.context.store.max_offset(TOPIC, 0) == 0
        assert stage.brokers["broker-a"].context.offsets.query(GROUP, TOPIC, 0) == 1
        with pytest.raises(ResponseError, match="No topic route info"):
            await (await stage.admin()).examine_topic_route_info(TOPIC)
        # The brokers' next registrations do not restore the topic.
        await stage.world.sleep(70)
        assert TOPIC not in await stage.run("topicList")

    play(scenario, brokers=2)


def test_delete_topic_in_an_unknown_cluster_is_an_error(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        with pytest.raises(ClientError, match="knows no cluster"):
            await stage.run(f"deleteTopic -c Nowhere -t {TOPIC}")

    play(scenario)


def test_the_cleaning_commands_reach_every_master(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await stage.create_topic(TOPIC, 2)
        await stage.send(1, TOPIC)
        for broker in stage.brokers.values():
            broker.context.topics.delete(TOPIC)
        addresses = [broker.address for broker in stage.brokers.values()]
        assert await stage.run("cleanUnusedTopic -c DefaultCluster") == [
            f"{address}: queues of unknown topics removed" for address in addresses
        ]
        assert all(broker.context.store.max_offset(TOPIC, 0) == 0 for broker in stage.brokers.values())
        assert await stage.data(f"cleanExpiredCQ -b {addresses[0]}") == {
            "brokerAddr": addresses[0],
            "success": True,
        }
        assert await stage.run(f"deleteExpiredCommitLog -b {addresses[1]}") == [
            f"{addresses[1]}: expired files will be deleted within 10 s"
        ]

    play(scenario, brokers=2)
