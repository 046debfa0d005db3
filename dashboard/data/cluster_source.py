"""ClusterSource: what the pages show, asked of all servers at the same time, each with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.admin.groups import group_names, groups_with_offsets
from rewindmq.client.admin.watched_reset.routes import Routes, addressed
from rewindmq.dashboard.data.answer import (
    LIMIT_SECONDS,
    NAME_SERVER,
    THE_BROKER,
    Answer,
    NoAnswer,
    failed_with,
)
from rewindmq.dashboard.data.lag_history import LagHistory
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper
from rewindmq.protocol.body.stats import OffsetWrapper, TopicOffset
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX, reply_topic, retry_topic, topic_fault
from rewindmq.protocol.remoting.runtime import Cancellable

# Seconds between two looks at an answer that is being decoded when its time is over.
_DECODING_SECONDS: Final = 0.1

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True)
class BrokerState:
    """A broker process and its runtime statistics (GET_BROKER_RUNTIME_INFO, 28)."""

    cluster: str
    name: str
    broker_id: int
    address: str
    stats: Answer[dict[str, str]]


@dataclass(frozen=True)
class Queues(Generic[T]):
    """Rows by queue, sorted, and a sentence for each broker that could not be asked."""

    rows: dict[MessageQueue, T] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


class _TimeLimit:
    """Cancels a task after some time, unless it is decoding an answer that has arrived.

    After ``end`` it is in no cycle of references. Otherwise a scrape's answers would stay until the garbage
    collector finds them, which holds the event loop.
    """

    def __init__(self, admin: AdminClient, task: asyncio.Task[Any]) -> None:
        self._admin = admin
        self._task = task
        self._timer: Cancellable | None = None

    def begin(self, seconds: float) -> None:
        self._timer = self._admin.runtime.timers.call_timeout(seconds, self._expire)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        if self._admin.is_decoding(self._task):
            self.begin(_DECODING_SECONDS)
        else:
            self._task.cancel()


class ClusterSource:
    """Reads a cluster for the pages."""

    def __init__(self, admin: AdminClient) -> None:
        self.admin = admin
        self.runtime = admin.runtime
        self.lag_history = LagHistory(self.runtime.clock)

    async def ask(
        self, work: Awaitable[T], seconds: float = LIMIT_SECONDS, server: str = THE_BROKER
    ) -> Answer[T]:
        """Await a request for at most ``seconds``; a failure becomes the answer's ``problem``.

        The time limit is for the server: ``work`` may take longer to decode a large answer that has arrived.
        The limit includes decoding in tasks that ``work`` starts.

        Args:
            server: which server is asked, as the subject of a sentence.
        """
        task = asyncio.ensure_future(work)
        limit = _TimeLimit(self.admin, task)
        limit.begin(seconds)
        try:
            await asyncio.wait((task,))
            if task.cancelled():
                return Answer(None, f"no answer within {seconds:g} s", server=server)
            return Answer(task.result())
        except RewindMQError as error:
            return failed_with(error, server)
        finally:
            limit.end()
            task.cancel()

    async def ask_each(self, keys: Iterable[K], work: Callable[[K], Awaitable[T]]) -> dict[K, Answer[T]]:
        """Await ``work(key)`` of every key at the same time, each for at most 2 s; the order is the keys'."""

        # The request is made in here, so that a visitor who leaves early leaves none behind unawaited.
        async def one(key: K) -> Answer[T]:
            return await self.ask(work(key))

        keys = tuple(keys)
        return dict(zip(keys, await asyncio.gather(*map(one, keys)), strict=True))

    async def brokers(self) -> Answer[list[BrokerState]]:
        """Return every broker process with its statistics, sorted by cluster, name and id."""
        info = await self.ask(self.admin.brokers.examine_broker_cluster_info(), server=NAME_SERVER)
        if info.value is None:
            return info.failed()
        places = sorted(
            (broker.cluster or "", name, int(broker_id), address)
            for name, broker in info.value.broker_addr_table.items()
            for broker_id, address in broker.broker_addrs.items()
        )
        stats = await self.ask_each(
            (place[3] for place in places), self.admin.brokers.fetch_broker_runtime_stats
        )
        return Answer([BrokerState(*place, stats[place[3]]) for place in places])

    async def own_topics(self) -> Answer[frozenset[str]]:
        """Return the topics that brokers create for themselves: one named after each cluster and broker,
        and one for replies in each cluster."""
        info = await self.ask(self.admin.brokers.examine_broker_cluster_info(), server=NAME_SERVER)
        if info.value is None:
            return info.failed()
        clusters = info.value.cluster_addr_table
        return Answer(frozenset({*clusters, *info.value.broker_addr_table, *map(reply_topic, clusters)}))

    async def topic_rate(self, topic: str) -> float | None:
        """Return the messages per second that brokers stored in the last minute; None: none counts them.

        A broker counts a topic from its first message on, so a refusal is no failure.
        """
        masters = await self.masters(topic)
        answers = await self.ask_each(
            (masters.value or {}).values(),
            lambda address: self.admin.brokers.view_broker_stats_data(address, "TOPIC_PUT_NUMS", topic),
        )
        rates = [answer.value.stats_minute.tps for answer in answers.values() if answer.value is not None]
        return sum(rates) if rates else None

    async def topics(self) -> Answer[list[str]]:
        """Return the names of all topics, sorted, without groups' retry topics."""
        names = await self.ask(self.admin.topics.fetch_all_topic_list(), server=NAME_SERVER)
        if names.value is None:
            return names
        return Answer([name for name in names.value if not name.startswith(RETRY_GROUP_TOPIC_PREFIX)])

    async def groups(self) -> Answer[list[str]]:
        """Return the names of the groups that have a retry topic or a stored offset, sorted.

        Every group gets its retry topic when it connects. Another one may have offsets that were copied to
        it. Offsets at a broker that does not answer are left out, and RocketMQ's own groups.
        """
        names, masters = await asyncio.gather(
            self.ask(self.admin.topics.fetch_all_topic_list(), server=NAME_SERVER), self.every_master()
        )
        if names.value is None:
            return names
        answers = await self.ask_each(
            (masters.value or {}).values(), self.admin.groups.broker_consumer_offsets
        )
        offsets = [answer.value for answer in answers.values() if answer.value is not None]
        # In a worker thread, as there may be offsets of 100,000 topics and groups.
        return Answer(await self.runtime.workers.run(_group_names, names.value, offsets))

    async def addresses(self) -> Answer[dict[str, str]]:
        """Return the broker's name by the address of every broker process that the name server knows."""
        info = await self.ask(self.admin.brokers.examine_broker_cluster_info(), server=NAME_SERVER)
        if info.value is None:
            return info.failed()
        brokers = info.value.broker_addr_table.items()
        return Answer({address: name for name, each in brokers for address in each.broker_addrs.values()})

    async def topic_queues(self, topic: str, routes: Routes | None = None) -> Answer[Queues[TopicOffset]]:
        """Return the bounds of each queue of a topic.

        Args:
            routes: learns the topic's route; None asks without it.
        """

        async def ask(address: str) -> Mapping[MessageQueue, TopicOffset]:
            return (await self.admin.topics.broker_topic_stats(address, topic)).offset_table

        return await self._queues(await self.masters(topic, routes), ask)

    async def group_queues(self, group: str) -> Answer[Queues[OffsetWrapper]]:
        """Return stored and maximum offset of each queue that a group consumes."""

        async def ask(address: str) -> Mapping[MessageQueue, OffsetWrapper]:
            return (await self.admin.groups.broker_group_stats(address, group)).offset_table

        return await self._queues(await self.group_masters(group), ask)

    async def _queues(
        self,
        masters: Answer[dict[str, str]],
        ask: Callable[[str], Awaitable[Mapping[MessageQueue, T]]],
    ) -> Answer[Queues[T]]:
        """Ask every one of the brokers for its rows."""
        if masters.value is None:
            return masters.failed()
        answers = await self.ask_each(masters.value.values(), ask)
        by_name = {name: answers[address] for name, address in masters.value.items()}
        # In a worker thread: 50,000 queues would hold the event loop.
        return Answer(await self.runtime.workers.run(_merged, by_name))

    async def masters(self, topic: str, routes: Routes | None = None) -> Answer[dict[str, str]]:
        """Return the address of each broker that serves the topic, by name: the master's, else a slave's."""
        ask = self.admin.topics.examine_topic_route_info if routes is None else routes.route
        route = await self.ask(ask(topic), server=NAME_SERVER)
        if route.value is None:
            if route.code == ResponseCode.TOPIC_NOT_EXIST:
                return replace(route.failed(), problem="no broker has this topic")
            if route.outcome is NoAnswer.REFUSED and (fault := topic_fault(topic)) is not None:
                # RewindMQ's name server refuses such a name, which no topic can have.
                return replace(
                    route.failed(),
                    problem=f"no broker has this topic: {fault.rstrip('.')}",
                    code=ResponseCode.TOPIC_NOT_EXIST,
                )
            return route.failed()
        return Answer(dict(addressed(route.value.broker_datas)))

    async def every_master(self) -> Answer[dict[str, str]]:
        """Return the address of every broker, by name: the master's, else a slave's."""
        info = await self.ask(self.admin.brokers.examine_broker_cluster_info(), server=NAME_SERVER)
        if info.value is None:
            return info.failed()
        return Answer(dict(addressed(info.value.broker_addr_table.values())))

    async def group_masters(self, group: str) -> Answer[dict[str, str]]:
        """Return the same if the group has a retry topic, or a broker has an offset or settings of it."""
        masters, retry = await asyncio.gather(self.every_master(), self.masters(retry_topic(group)))
        if masters.value is None:
            return masters
        if retry.is_absent and not await self._is_known(group, masters.value.values()):
            return replace(retry.failed(), problem="no broker has this group")
        return masters if retry.value is not None or retry.is_absent else retry

    async def _is_known(self, group: str, addresses: Iterable[str]) -> bool:
        """Return whether a broker has an offset or settings of the group, or may have them: it is silent."""

        async def ask(address: str) -> bool:
            if (await self.admin.groups.broker_group_stats(address, group)).offset_table:
                return True
            return group in await self.admin.groups.subscription_groups(address)

        answers = await self.ask_each(addresses, ask)
        return any(each.value or each.value is None for each in answers.values())


def _group_names(topics: Iterable[str], offsets: Iterable[ConsumerOffsetSerializeWrapper]) -> list[str]:
    return sorted(group_names(topics, set[str]().union(*map(groups_with_offsets, offsets))))


def _merged(answers: Mapping[str, Answer[Mapping[MessageQueue, T]]]) -> Queues[T]:
    """Return the rows of all brokers' answers, by the brokers' names."""
    rows: dict[MessageQueue, T] = {}
    problems: dict[str, str] = {}
    for name, answer in answers.items():
        if answer.value is None:
            problems[name] = answer.problem or ""
        else:
            rows.update(answer.value)
    return Queues({queue: rows[queue] for queue in in_order(rows)}, problems)


def in_order(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Return the queues sorted.

    The queues of each topic and broker are sorted separately: one sort of all would hold the event loop, even
    from another thread.
    """
    parts: dict[tuple[str, str], list[MessageQueue]] = {}
    for queue in queues:
        parts.setdefault((queue.topic, queue.broker_name), []).append(queue)
    return [queue for part in sorted(parts) for queue in sorted(parts[part], key=_queue_id)]


def _queue_id(queue: MessageQueue) -> int:
    return queue.queue_id
