"""The brokers and queues of topics, without asking a name server for them at each sample."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.remote import queues_of
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.route import BrokerData, TopicRouteData
from rewindmq.protocol.errors import RemotingError
from rewindmq.protocol.message.sysflag import Perm
from rewindmq.protocol.message_queue import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rewindmq.client.admin.admin_client import AdminClient

# Protocol seconds for which a route is used.
ROUTE_AGE: Final = 10.0


@dataclass(frozen=True, slots=True)
class TopicShape:
    """The brokers and queues of a topic.

    Attributes:
        brokers: name and one address of each broker, sorted by name.
        read, written: how many queues a broker has to read and to write, by its name.
        queues: every readable or writable queue, sorted.
    """

    brokers: tuple[tuple[str, str], ...]
    read: dict[str, int]
    written: dict[str, int]
    queues: tuple[MessageQueue, ...]

    def is_read(self, queue: MessageQueue) -> bool:
        """Return whether consumers may read the queue."""
        return queue.queue_id < self.read[queue.broker_name]

    def is_written(self, queue: MessageQueue) -> bool:
        """Return whether producers may write to the queue."""
        return queue.queue_id < self.written[queue.broker_name]


class Routes:
    """Looks up the routes of topics.

    A route is used for 10 s, or until ``forget``. Otherwise a group of 1,000 consumers would cost 1,000
    requests to a name server at each sample.
    """

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin
        # Topic to the time of the answer, and the answer.
        self._known: dict[str, tuple[float, TopicRouteData | RemotingError]] = {}
        # One caller asks the name server, and the others wait for the answer.
        self._asking = asyncio.Lock()

    def forget(self) -> None:
        """Ask for each route again: a server did not answer, so it may have moved."""
        self._known.clear()

    async def route(self, topic: str) -> TopicRouteData:
        """Return a topic's route.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route.
            RemotingError: no name server answered.
        """
        async with self._asking:
            now = self._admin.runtime.clock.monotonic()
            known = self._known.get(topic)
            if known is None or now - known[0] >= ROUTE_AGE:
                known = self._known[topic] = now, await self._ask(topic)
        if isinstance(known[1], RemotingError):
            # Many callers may get it, and each would add its frames.
            raise known[1].with_traceback(None)
        return known[1]

    async def brokers_of(self, topic: str) -> list[tuple[str, str]]:
        """Return name and one address of every broker of the topic, sorted by name; errors of ``route``."""
        return addressed((await self.route(topic)).broker_datas)

    async def shape_of(self, topic: str) -> TopicShape:
        """Return brokers and queues of the topic; errors as of ``route``."""
        route = await self.route(topic)
        counts = {data.broker_name: data for data in route.queue_datas}
        return TopicShape(
            tuple(addressed(route.broker_datas)),
            {name: data.read_queue_nums if data.perm & Perm.READ else 0 for name, data in counts.items()},
            {name: data.write_queue_nums for name, data in counts.items()},
            tuple(queues_of(topic, route)),
        )

    async def _ask(self, topic: str) -> TopicRouteData | RemotingError:
        try:
            return await self._admin.topics.examine_topic_route_info(topic)
        except RemotingError as error:
            return error


def addressed(brokers: Iterable[BrokerData]) -> list[tuple[str, str]]:
    """Return name and one address of each broker, the master's if there is one, sorted by name."""
    tables = ((broker.broker_name, broker.broker_addrs) for broker in brokers)
    return sorted((name, each.get(MASTER_ID) or min(each.values())) for name, each in tables if each)
