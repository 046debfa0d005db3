"""The brokers that a watch asks about a group."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindmq.client.admin.asking import ask_each
from rewindmq.client.admin.watched_reset.counts import Counts
from rewindmq.client.admin.watched_reset.routes import ROUTE_AGE, Routes
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.rewind import Rewind
from rewindmq.protocol.body.running_info import ConsumerRunningInfo
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
from rewindmq.watch.evidence.group import HEARTBEAT
from rewindmq.watch.evidence.sample import Fetched
from rewindmq.watch.rules.minute import CountSpan

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


@dataclass(frozen=True, slots=True)
class ToldOffsets:
    """What a broker told of a group in a queue.

    Attributes:
        stored: the stored offset, 0 if there is none.
        max_offset: end of the queue.
        rewind: what the broker has handed out since the stored offset was last set back; None if it does not
            know, as RocketMQ's brokers.
        awaited: the target of a classic reset that no consumer has committed yet; None likewise.
    """

    stored: int
    max_offset: int
    rewind: Rewind | None = None
    awaited: int | None = None


class Brokers:
    """Asks the brokers of a topic and of a group about one group's offsets and consumers.

    A broker that failed is asked last for the consumers, until 35 s after its last failure. The watch asks a
    broker that hangs for offsets every 10 s: each request costs seconds.

    Args:
        asks_rewinds: False treats every broker as one of RocketMQ's, which tell no rewinds.

    Attributes:
        routes: of the topic, and of the group's retry topic.
        connections: what brokers told of the group's consumers since ``consumers_of`` last asked, by address;
            None: the broker knows none.
    """

    def __init__(self, admin: AdminClient, *, asks_rewinds: bool = True) -> None:
        self._admin = admin
        self._asks_rewinds = asks_rewinds
        self.routes = Routes(admin)
        self.connections: dict[str, ConsumerConnection | None] = {}
        # Address to the time at which the broker failed, and the time at which it hung.
        self._failed: dict[str, float] = {}
        self._hung: dict[str, float] = {}
        # Names of the brokers that serve LIST_REWINDS (190003), and of RocketMQ's, which do not.
        self._rewinders: set[str] = set()
        self._without_rewinds: set[str] = set()
        self._counts = Counts(admin, self._note_failure)

    @property
    def rewinders(self) -> frozenset[str]:
        """Names of the brokers that have told rewinds."""
        return frozenset(self._rewinders)

    async def _of_group(self, group: str) -> list[str]:
        """Return one address of every broker of the group. Brokers that failed lately come last."""
        addresses = [address for _, address in await self.routes.brokers_of(retry_topic(group))]
        until = self._now() - HEARTBEAT
        return sorted(addresses, key=lambda address: self._failed.get(address, until) > until)

    def _note_failure(self, address: str, error: RewindMQError) -> None:
        if isinstance(error, RemotingError):
            self._failed[address] = self._now()
        if isinstance(error, RequestTimeoutError):
            self._hung[address] = self._now()

    def _now(self) -> float:
        return self._admin.runtime.clock.monotonic()

    async def offsets_of(self, group: str, topic: str) -> dict[MessageQueue, ToldOffsets]:
        """Return the group's offsets in the topic, without queues of brokers that do not tell them.

        RewindMQ's brokers are asked for its rewinds, too.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route.
            RemotingError: no name server answered.
        """
        told: dict[MessageQueue, ToldOffsets] = {}

        async def ask(broker: tuple[str, str]) -> None:
            name, address = broker
            try:
                told.update(await self._offsets_at(name, address, group, topic))
            except RewindMQError as error:
                self._note_failure(address, error)

        until = self._now() - ROUTE_AGE
        brokers = await self.routes.brokers_of(topic)
        await ask_each([each for each in brokers if self._hung.get(each[1], until) <= until], ask)
        return told

    async def _offsets_at(
        self, name: str, address: str, group: str, topic: str
    ) -> dict[MessageQueue, ToldOffsets]:
        if self._asks_rewinds and name not in self._without_rewinds:
            try:
                rewinds = await self._admin.resets.broker_rewinds(address, group, topic)
            except ResponseError as error:
                if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    raise
                self._without_rewinds.add(name)
            else:
                self._rewinders.add(name)
                return {
                    MessageQueue(topic, name, row.queue_id): ToldOffsets(
                        max(0, row.stored), row.max_offset, row.rewind, row.awaited
                    )
                    for row in rewinds.queues
                }
        stats = await self._admin.groups.broker_group_stats(address, group, topic)
        return {
            queue: ToldOffsets(entry.consumer_offset, entry.broker_offset)
            for queue, entry in stats.offset_table.items()
        }

    async def fetched(
        self, group: str, topic: str, needed: AbstractSet[str] | None = None
    ) -> dict[str, Fetched]:
        """Return how many messages the group fetched within a minute, by broker name.

        Left out are brokers that tell its rewinds, and brokers that do not answer.

        Args:
            needed: names of the brokers to ask; None: all.
        """
        brokers = [each for each in await self._counting(topic) if needed is None or each[0] in needed]
        return await self._counts.fetched(group, topic, brokers)

    async def count_closely(self, group: str, topic: str, spans: Mapping[str, CountSpan]) -> None:
        """Ask brokers for their counts until they change, each within its span.

        Args:
            spans: broker name to the time, on the monotonic protocol clock.
        """

        async def ask(broker: tuple[str, str]) -> None:
            await self._counts.closely(group, topic, broker, spans[broker[0]])

        await ask_each([each for each in await self._counting(topic) if each[0] in spans], ask)

    async def _counting(self, topic: str) -> list[tuple[str, str]]:
        """Return name and address of the brokers that tell no rewinds."""
        brokers = await self.routes.brokers_of(topic)
        return [each for each in brokers if not self._asks_rewinds or each[0] in self._without_rewinds]

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
        self.connections.clear()
        for address in addresses:
            try:
                connection = await self.consumers_at(address, group)
            except RewindMQError as error:
                failure = error
                continue
            if connection is not None:
                return connection
        if failure is not None:
            raise failure
        return None

    async def consumers_at(self, address: str, group: str) -> ConsumerConnection | None:
        """Return the consumers that one broker knows; None if it knows none.

        Raises:
            ResponseError: the broker refused.
            RemotingError: the broker did not answer.
        """
        try:
            found = await self._admin.groups.examine_consumer_connection_info(group, address)
        except RewindMQError as error:
            if not isinstance(error, ResponseError) or error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                self.connections.pop(address, None)
                self._note_failure(address, error)
                raise
            self.connections[address] = None
        else:
            self.connections[address] = found if found.connection_set else None
        return self.connections[address]

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
                return await self._admin.groups.get_consumer_running_info(group, client_id, address=address)
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                failure = error
            except RemotingError as error:
                if isinstance(error, RequestTimeoutError) and not isinstance(error, NotConnectedError):
                    # Perhaps the consumer does not answer its broker. Then it answers no other broker either.
                    raise
                self._note_failure(address, error)
                failure = error
        raise failure
