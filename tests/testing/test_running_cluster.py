"""A running cluster keeps its own topics, groups and offsets through a test."""

import secrets
from collections.abc import AsyncIterator

import pytest

from rewindmq.protocol.body.route import QueueData
from rewindmq.testing import KitError, Rmq
from rewindmq.testing.clusters.servers import Servers


@pytest.fixture
def running(kit_cluster: Servers) -> Servers:
    """The cluster as the kit sees one that it did not start."""
    return Servers(kit_cluster.namesrv_address, kit_cluster.client_options)


@pytest.fixture
async def owner(kit_cluster: Servers) -> AsyncIterator[Rmq]:
    """The owner of the running cluster."""
    async with Rmq(kit_cluster) as owner:
        yield owner


async def queues_of(rmq: Rmq, topic: str) -> list[QueueData]:
    return (await rmq.admin.topics.examine_topic_route_info(topic)).queue_datas


async def test_exact_topics_and_groups_of_a_running_cluster_stay(owner: Rmq, running: Servers) -> None:
    orders = await owner.topic("orders", queues=2)
    await orders.send_many(range(3))
    billing = owner.group(owner.name("billing"), orders)
    before = await queues_of(owner, orders.name)
    async with Rmq(running) as rmq:
        topic = await rmq.topic(orders.name, queues=2, exact=True)
        async with rmq.push(billing.name, topic, exact=True) as group:
            await group.caught_up()
            await group.stored()
    assert await orders.read() == orders.sent
    assert sum((await billing.offsets()).values()) == 3
    assert await queues_of(owner, orders.name) == before


async def test_an_exact_topic_that_the_test_created_stays(owner: Rmq, running: Servers) -> None:
    name = owner.name(secrets.token_hex(4))
    async with Rmq(running) as rmq:
        await rmq.topic(name, queues=2, exact=True)
    assert [each.read_queue_nums for each in await queues_of(owner, name)] == [2]
    await owner.topic(name, queues=2, exact=True)


async def test_an_existing_topic_with_other_queues_is_refused_and_stays(owner: Rmq, running: Servers) -> None:
    orders = await owner.topic("orders", queues=2)
    before = await queues_of(owner, orders.name)
    async with Rmq(running) as rmq:
        with pytest.raises(KitError, match="has 2 queues to read and 2 to write at broker-a, not 4"):
            await rmq.topic(orders.name, queues=4, exact=True)
    assert await queues_of(owner, orders.name) == before


async def test_names_with_a_suffix_are_deleted_in_a_running_cluster(owner: Rmq, running: Servers) -> None:
    async with Rmq(running) as rmq:
        topic = await rmq.topic("orders")
        async with rmq.push("billing", topic):
            pass
    assert [name for name in await owner.admin.topics.fetch_all_topic_list() if rmq.name("") in name] == []
