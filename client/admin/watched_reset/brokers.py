"""The brokers that a watch asks, without asking a name server for them at each sample."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.running_info import ConsumerRunningInfo
from rewindmq.protocol.body.stats import OffsetWrapper
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import (
    NotConnectedError,
    RemotingError,
    RequestTimeoutError,
    ResponseError,
    RewindMQError,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Protocol seconds for which a route is used.
_ROUTE_AGE: Final = 10.0


class Brokers:
    """Looks up the brokers of a topic and of a group, and asks them about the group's consumers.

    A route is used for 10 s, or until ``forget``. Otherwise a group of 1,000 consumers would cost 1,000
    requests to a name server at each sample. A broker that did not answer is asked last for 10 s, because
    each question to it may cost seconds.
    """

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin
        self._routes: dict[str, tuple[float, list[tuple[str, str]]]] = {}
        # One caller asks the name server; those beside it wait for its answer.
        self._asking = asyncio.Lock()
        # Address to the time at which the broker did not answer.
        self._silent: dict[str, float] = {}

    def forget(self) -> None:
        """Ask for each route again: a server did not answer, so it may have moved."""
        self._routes.clear()

    async def of(self, topic: str) -> list[tuple[str, str]]:
        """Return name and one address of every broker of the topic, sorted by name.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route.
            RemotingError: no name server answered.
        """
        async with self._asking:
            now = self._now()
            known = self._routes.get(topic)
            if known is None or now - known[0] >= _ROUTE_AGE:
                route = await self._admin.examine_topic_route_info(topic)
                addresses = ((broker.broker_name, broker.broker_addrs) for broker in route.broker_datas)
                pairs = [
                    (name, table.get(MASTER_ID) or min(table.values())) for name, table in addresses if table
                ]
                known = self._routes[topic] = now, sorted(pairs)
            return known[1]

    async def _of_group(self, group: str) -> list[str]:
        """Return one address of every broker with the group's consumers; silent ones last."""
        addresses = [address for _, address in await self.of(retry_topic(group))]
        now = self._now()
        self._silent = {key: at for key, at in self._silent.items() if now - at < _ROUTE_AGE}
        return sorted(addresses, key=lambda address: address in self._silent)

    def _now(self) -> float:
        return self._admin.runtime.clock.monotonic()

    async def consume_stats(self, group: str, topic: str) -> dict[MessageQueue, OffsetWrapper]:
        """Return the group's offsets in the topic, without queues of brokers that do not tell them.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route.
            RemotingError: no name server answered.
        """
        told: dict[MessageQueue, OffsetWrapper] = {}
        for _, address in await self.of(topic):
            try:
                told |= (await self._admin.broker_group_stats(address, group, topic)).offset_table
            except RewindMQError:
                continue
        return told

    async def consumers_of(self, group: str) -> ConsumerConnection | None:
        """Return the group's consumers; None if no broker knows one, or the group never connected.

        Consumers tell every broker of themselves, so one that answers is enough.

        Raises:
            ResponseError: a broker refused, and no other knows a consumer.
            RemotingError: a server did not answer, and no other knows a consumer.
        """
        try:
            addresses = await self._of_group(group)
        except ResponseError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            raise
        failure: RewindMQError | None = None
        for address in addresses:
            try:
                connection = await self._admin.examine_consumer_connection_info(group, address)
            except ResponseError as error:
                if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                    failure = error
                continue
            except RemotingError as error:
                self._silent[address] = self._now()
                failure = error
                continue
            if connection.connection_set:
                return connection
        if failure is not None:
            raise failure
        return None

    async def running_info(self, group: str, client_id: str) -> ConsumerRunningInfo:
        """Return the running info of a consumer from the first broker that knows it.

        Raises:
            ResponseError: no broker knows the client, or it did not answer its broker.
            RemotingError: a server did not answer.
        """
        failure: RewindMQError = ResponseError(
            ResponseCode.SYSTEM_ERROR, f"no broker knows client {client_id}"
        )
        for address in await self._of_group(group):
            try:
                return await self._admin.get_consumer_running_info(group, client_id, address=address)
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                failure = error
            except RemotingError as error:
                if isinstance(error, RequestTimeoutError) and not isinstance(error, NotConnectedError):
                    # Perhaps the consumer does not answer its broker. Then it answers no other broker either.
                    raise
                self._silent[address] = self._now()
                failure = error
        raise failure
