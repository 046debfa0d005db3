"""ClientInstance: shared by producers and consumers of one client id (docs/spec/client.md C.1 to C.5).

It has one connection pool, one route table, one set of timers and one rebalance service. Source: RocketMQ
4.9.4 ``MQClientInstance``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from rewindmq.client.core.broker_api import BrokerApi
from rewindmq.client.core.broker_requests import BrokerRequests
from rewindmq.client.core.callback_pool import CallbackPool
from rewindmq.client.core.client_config import ClientConfig
from rewindmq.client.core.inner import ClientInner, ConsumerInner
from rewindmq.client.core.periodic import PeriodicTask
from rewindmq.client.core.rebalance_service import RebalanceService
from rewindmq.client.core.route import MASTER_ID
from rewindmq.client.core.route_table import RouteTable
from rewindmq.client.reply.pending_replies import PendingReplies
from rewindmq.protocol.body.heartbeat import HeartbeatData, ProducerData
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.tasks import cancel_tasks, end_tasks
from rewindmq.protocol.remoting.unique_id import UniqueIdGenerator

INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"

ROUTE_REFRESH = (0.010, 30.0)
HEARTBEAT = (1.0, 30.0)
PERSIST = (10.0, 5.0)

_log = logging.getLogger(__name__)


class ClientInstance:
    """Connections, routes and timers of one client id; ``instance_registry`` creates and shares it.

    Attributes:
        config: the configuration of the first client; it applies to all clients of the instance.
        replies: the requests that wait for their replies.
        callbacks: runs pull callbacks and requests from brokers.
        monitor: Java's lock on the instance object. Resets hold it in profiles that serialise resets;
            consumers that start or stop wait for it.
    """

    def __init__(self, runtime: Runtime, config: ClientConfig) -> None:
        self.runtime = runtime
        self.config = config
        self.client_id = config.client_id
        self.profile = config.profile
        self.remoting = RemotingClient(
            runtime,
            BrokerRequests(self).handlers(),
            serialize_type=config.serialize_type,
            greeting=lambda: self.api.heartbeat_command(self._heartbeat_data()),
        )
        self.api: BrokerApi = BrokerApi(
            self.remoting,
            config.namesrv_addrs,
            self.profile.announced_version,
            config.mq_client_api_timeout / 1000,
        )
        self.routes = RouteTable(self.api, self._on_route)
        self.unique_ids = UniqueIdGenerator(runtime, config.client_ip)
        self.replies = PendingReplies()
        self.callbacks = CallbackPool(config.client_callback_executor_threads)
        self.monitor = asyncio.Lock()
        self.rebalance_service = RebalanceService(
            runtime, self.profile.rebalance_min_interval, self.rebalance
        )
        self._producers: dict[str, ClientInner] = {}
        self._consumers: dict[str, ConsumerInner] = {}
        self._periodic: list[PeriodicTask] = []
        self._tasks: set[asyncio.Task[None]] = set()
        # Addresses of brokers whose different time scale has been logged.
        self._differently_scaled: set[str] = set()
        self._is_started = False

    # Lifecycle.

    @property
    def is_unused(self) -> bool:
        return not self._producers and not self._consumers

    async def start(self) -> None:
        """Start timers and services, at most once; wait for a reset in progress."""
        async with self.monitor:
            if self._is_started:
                return
            self._is_started = True
            runtime = self.runtime
            self._periodic = [
                PeriodicTask(runtime, *ROUTE_REFRESH, self._refresh_routes),
                PeriodicTask(runtime, *HEARTBEAT, self._clean_and_heartbeat),
                PeriodicTask(runtime, *PERSIST, self._persist_offsets),
            ]
            self.rebalance_service.start()

    async def close(self) -> None:
        """Unregister and stop everything; called when no group is left."""
        await self._unregister(INNER_PRODUCER_GROUP, None)
        for periodic in self._periodic:
            await periodic.stop()
        await self.rebalance_service.stop()
        await end_tasks(self._tasks)
        await self.remoting.close()

    def abort(self) -> None:
        """Stop everything at once, without unregistering at the brokers."""
        for periodic in self._periodic:
            periodic.cancel()
        self.rebalance_service.cancel()
        cancel_tasks(self._tasks)
        self.remoting.abort()

    def reset_lock(self) -> AbstractAsyncContextManager[object]:
        """Return the monitor if the profile serialises resets, else a context manager that locks nothing."""
        return self.monitor if self.profile.serialised_reset else contextlib.nullcontext()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work in the background; ``close`` cancels it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)
        return task

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("background work failed", exc_info=task.exception())

    # Groups.

    def register_producer(self, producer: ClientInner) -> None:
        """Add a producer; raise ClientError if this instance has one of the same group."""
        if producer.group in self._producers:
            raise ClientError(
                f"The producer group[{producer.group}] has been created before, specify another name please."
            )
        self._producers[producer.group] = producer

    def register_consumer(self, consumer: ConsumerInner) -> None:
        """Add a consumer; raise ClientError if this instance has one of the same group."""
        if consumer.group in self._consumers:
            raise ClientError(
                f"The consumer group[{consumer.group}] has been created before, specify another name please."
            )
        self._consumers[consumer.group] = consumer

    def find_producer(self, group: str) -> object | None:
        """Return this instance's producer of the group, None if it has none."""
        return self._producers.get(group)

    def find_consumer(self, group: str) -> ConsumerInner | None:
        """Return this instance's consumer of the group, None if it has none."""
        return self._consumers.get(group)

    def discard(self, client: object) -> None:
        """Remove a client without unregistering it at the brokers."""
        tables: tuple[dict[str, Any], ...] = (self._producers, self._consumers)
        for table in tables:
            for group in [group for group, known in table.items() if known is client]:
                del table[group]

    async def unregister_producer(self, group: str) -> None:
        """Remove a producer here, and at the brokers with UNREGISTER_CLIENT (35)."""
        del self._producers[group]
        await self._unregister(group, None)

    async def unregister_consumer(self, group: str) -> None:
        """Remove a consumer here and at the brokers, after a serialised reset in progress."""
        async with self.reset_lock():
            del self._consumers[group]
            await self._unregister(None, group)

    async def _unregister(self, producer_group: str | None, consumer_group: str | None) -> None:
        await self._await_all(
            self.api.unregister_client(address, self.client_id, producer_group, consumer_group)
            for addresses in list(self.routes.brokers.values())
            for address in list(addresses.values())
        )

    # Brokers.

    async def send_heartbeats(self) -> bool:
        """Send HEART_BEAT (34) to every known master, and to slaves if there are consumers; log failures.

        Returns:
            True if every broker accepted.
        """
        data = self._heartbeat_data()
        return await self._await_all(
            self._heartbeat(name, address, data)
            for name, addresses in list(self.routes.brokers.items())
            for broker_id, address in list(addresses.items())
            if broker_id == MASTER_ID or self._consumers
        )

    async def _heartbeat(self, broker_name: str, address: str, data: HeartbeatData) -> None:
        scale, own = await self.api.heartbeat(address, data), self.api.time_scale
        if scale not in (None, own) and address not in self._differently_scaled:
            self._differently_scaled.add(address)
            _log.warning(
                "broker %s at %s uses time scale %s, but client %s uses %s, so their timers do not match;"
                " give the client the option time_scale=%s",
                broker_name,
                address,
                scale,
                self.client_id,
                own,
                scale,
            )

    def _heartbeat_data(self) -> HeartbeatData:
        return HeartbeatData(
            self.client_id,
            [ProducerData(group) for group in (INNER_PRODUCER_GROUP, *self._producers)],
            [consumer.heartbeat_data() for consumer in self._consumers.values()],
        )

    async def _await_all(self, requests: Iterable[Awaitable[object]]) -> bool:
        """Await requests; log those that fail, and return True if none did."""
        have_succeeded = True
        for outcome in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(outcome, RewindMQError):
                have_succeeded = False
                _log.warning("%s: %s", self.client_id, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
        return have_succeeded

    async def offset_address(self, queue: MessageQueue) -> str:
        """Return the address for offset queries and commits of a queue."""
        return await self.routes.offset_address(
            queue.topic, queue.broker_name, any_id=self.profile.offsets_from_any_broker
        )

    # Timers.

    async def _refresh_routes(self) -> None:
        clients: list[ClientInner] = [*self._consumers.values(), *self._producers.values()]
        for topic in dict.fromkeys(topic for client in clients for topic in client.topics()):
            await self.routes.refresh(topic)

    async def _clean_and_heartbeat(self) -> None:
        self.routes.purge_vanished_brokers()
        await self.send_heartbeats()

    async def _persist_offsets(self) -> None:
        probe = self.runtime.probe
        if probe is not None:
            probe(Point.PERSIST_TICK, {"client_id": self.client_id})
        for consumer in list(self._consumers.values()):
            await consumer.persist_offsets()

    async def rebalance(self) -> bool:
        """Rebalance every consumer once; return True if all are balanced."""
        balanced = True
        for consumer in list(self._consumers.values()):
            balanced = await consumer.rebalance() and balanced
        return balanced

    def _on_route(self, topic: str, route: TopicRouteData) -> None:
        clients: list[ClientInner] = [*self._producers.values(), *self._consumers.values()]
        for client in clients:
            client.route_changed(topic, route)

    # Resets.

    async def reset_offsets(self, topic: str, group: str, targets: Mapping[MessageQueue, int]) -> None:
        """Carry out a reset of one consumer; serialised resets run one after another."""
        async with self.reset_lock():
            consumer = self.find_consumer(group)
            if consumer is None or not await consumer.reset(topic, targets):
                _log.info("[reset-offset] consumer dose not exist. group=%s", group)
