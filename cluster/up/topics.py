"""Topics that ``rewindmq up`` creates before it reports that the cluster is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.cluster.clients import ClusterClients
from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError

DEFAULT_QUEUES: Final = 4
_LOOK_SECONDS: Final = 0.02
_ROUTE_SECONDS: Final = 30.0


async def create_topics(cluster: ClusterClients, topics: Sequence[tuple[str, int | None]]) -> None:
    """Create the topics at all masters, and wait until the name server has their routes.

    A topic that exists keeps its settings, unless a number of queues was given.

    Args:
        topics: names, each with its number of queues at each broker; None: 4, or what the topic has.

    Raises:
        RewindMQError: a broker refused.
        ClusterError: the name server did not get a topic's route within 30 s.
    """
    async with cluster.admin() as admin:
        # Not the processes' addresses: a broker may listen at all interfaces.
        masters: dict[str, str] = {}
        for cluster_name in (await admin.brokers.examine_broker_cluster_info()).cluster_addr_table:
            masters |= await admin.brokers.master_addresses(cluster_name)
        for name, queues in topics:
            await _create(admin, masters, name, queues)


async def _create(admin: AdminClient, masters: dict[str, str], topic: str, queues: int | None) -> None:
    existing = set() if queues else await _brokers_of(admin, topic)
    count = queues or DEFAULT_QUEUES
    config = TopicConfig(topic, read_queue_nums=count, write_queue_nums=count)
    for name, address in masters.items():
        if name not in existing:
            await admin.topics.create_and_update_topic_config(address, config)
    clock = admin.runtime.clock
    end = clock.monotonic() + _ROUTE_SECONDS
    while missing := masters.keys() - await _brokers_of(admin, topic):
        if clock.monotonic() > end:
            names = ", ".join(sorted(missing))
            raise ClusterError(f"topic {topic} got no route at {names} within {_ROUTE_SECONDS:g} s")
        await admin.runtime.timers.sleep(_LOOK_SECONDS)


async def _brokers_of(admin: AdminClient, topic: str) -> set[str]:
    try:
        route = await admin.topics.examine_topic_route_info(topic)
    except ResponseError as error:
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return set()
    return {queue.broker_name for queue in route.queue_datas}
