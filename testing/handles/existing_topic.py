"""Looks whether a running cluster already has a topic, which then belongs to its owner."""

from __future__ import annotations

from collections.abc import Collection

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.testing.errors import KitError


async def has_topic(admin: AdminClient, topic: str, queues: int, masters: Collection[str]) -> bool:
    """Return whether the cluster has the topic, with ``queues`` queues at each master.

    Raises:
        KitError: the topic has another number of queues at a master, or none.
        RewindMQError: no name server answered.
    """
    try:
        route = await admin.topics.examine_topic_route_info(topic)
    except ResponseError as error:
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return False
    counts = {each.broker_name: (each.read_queue_nums, each.write_queue_nums) for each in route.queue_datas}
    for name in sorted(masters):
        reads, writes = counts.get(name, (0, 0))
        if (reads, writes) != (queues, queues):
            raise KitError(
                f"topic {topic} has {reads} queues to read and {writes} to write at {name}, not {queues}: the"
                " kit does not change topics of a running cluster; ask for that number, or omit exact=True"
            )
    return True
