"""Survey: what brokers and consumers tell before a reset, each question asked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindmq.client.admin.asking import ask_each
from rewindmq.client.admin.watched_reset.broker_rules import BrokerRules, knows_group, rules_of
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.routes import TopicShape, addressed
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.stats import ConsumeStats, TopicOffset
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.watch.evidence.sample import Sample

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


@dataclass(frozen=True, slots=True)
class Survey:
    """What the brokers and consumers told of a group and a topic.

    Attributes:
        sample: of every queue, as a watch takes it.
        connection: the group's consumers; None: none is connected, or no broker told.
        rules: by broker name.
        bounds: first offset and end of every queue.
        addresses: of every broker of the cluster, by name.
        progress: the group's progress at each of them.
    """

    group: str
    shape: TopicShape
    sample: Sample
    connection: ConsumerConnection | None
    rules: Mapping[str, BrokerRules]
    bounds: Mapping[MessageQueue, tuple[int, int]]
    addresses: Mapping[str, str]
    progress: Mapping[str, ConsumeStats]

    @property
    def retry_lag(self) -> int:
        """Messages in the group's retry topic."""
        return sum(
            max(0, entry.broker_offset - entry.consumer_offset)
            for stats in self.progress.values()
            for queue, entry in stats.offset_table.items()
            if queue.topic == retry_topic(self.group)
        )


async def survey(
    admin: AdminClient,
    topic: str,
    group: str,
    brokers: Brokers,
    listed: Mapping[MessageQueue, TopicOffset] | None = None,
) -> Survey:
    """Ask the brokers of the topic, and the group's consumers.

    Args:
        listed: see ``bounds_of``.

    Raises:
        ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route; or a broker refused.
        RemotingError: a broker did not answer.
    """
    shape = await brokers.routes.shape_of(topic)
    sample = await take_sample(admin, topic, group, shape.queues, brokers)
    connections = [each for each in brokers.connections.values() if each is not None]
    info = await admin.brokers.examine_broker_cluster_info()
    addresses = dict(addressed(info.broker_addr_table.values())) | dict(shape.brokers)
    told = await ask_each(addresses.values(), lambda address: admin.groups.broker_group_stats(address, group))
    progress = dict(zip(addresses, told, strict=True))
    rules = await rules_of(admin, topic, group, shape.brokers, brokers, progress)
    return Survey(
        group,
        shape,
        sample,
        connections[0] if connections else None,
        {each.name: each for each in rules},
        await bounds_of(admin, topic, shape, listed),
        addresses,
        progress,
    )


async def has_settings_elsewhere(admin: AdminClient, found: Survey, brokers: Brokers) -> bool:
    """Return whether the group ever connected, or a broker without the topic has settings of it."""
    try:
        if await brokers.routes.brokers_of(retry_topic(found.group)):
            return True
    except ResponseError:
        # No broker has its retry topic, or no topic can have that name.
        pass
    others = [address for name, address in found.addresses.items() if name not in found.rules]
    return any(await ask_each(others, lambda address: knows_group(admin, found.group, address)))


async def bounds_of(
    admin: AdminClient,
    topic: str,
    shape: TopicShape,
    listed: Mapping[MessageQueue, TopicOffset] | None = None,
) -> dict[MessageQueue, tuple[int, int]]:
    """Return the first offset and the end of every queue.

    Args:
        listed: what the brokers told of the topic's queues; None asks them.
    """
    if listed is None:
        tables = await ask_each(
            (address for _, address in shape.brokers),
            lambda address: admin.topics.broker_topic_stats(address, topic),
        )
        listed = {queue: row for table in tables for queue, row in table.offset_table.items()}

    async def ask(queue: MessageQueue) -> tuple[int, int]:
        # Brokers list only the queues that producers write to.
        return await admin.messages.min_offset(queue), await admin.messages.max_offset(queue)

    rest = [queue for queue in shape.queues if queue not in listed]
    return {queue: (row.min_offset, row.max_offset) for queue, row in listed.items()} | dict(
        zip(rest, await ask_each(rest, ask), strict=True)
    )


async def first_offsets(
    admin: AdminClient, bounds: Mapping[MessageQueue, tuple[int, int]], queues: Sequence[MessageQueue]
) -> dict[MessageQueue, int]:
    """Return the offset of the first message that still exists in each of the queues, which are read."""

    async def ask(queue: MessageQueue) -> int:
        least, most = bounds[queue]
        try:
            return await admin.messages.first_message_offset(queue, least, most)
        except ResponseError:
            # The broker does not let its messages be read.
            return least

    return dict(zip(queues, await ask_each(queues, ask), strict=True))
