"""A whole cluster under virtual time: real name server, real brokers, clients on hosts of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.client import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    MessageSelector,
    Producer,
    PullConsumer,
    PushConsumer,
)
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.points import Point, Stall
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.sim import World

OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LOG_BYTES = 4 << 20


class Events:
    """A probe that keeps what it hears, with the second it happened at."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.heard: list[tuple[float, Point, dict[str, Any]]] = []

    def __call__(self, point: Point, details: dict[str, Any]) -> None:
        self.heard.append((self._world.now, point, details))

    def at(self, point: Point, **wanted: Any) -> list[float]:
        """When a point was passed, to a tenth of a second."""
        return [
            round(when, 1)
            for when, heard, details in self.heard
            if heard is point and wanted.items() <= details.items()
        ]


class Inbox:
    """An async listener that keeps what it gets."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.messages: list[MessageExt] = []
        self.times: list[float] = []

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self.messages.extend(messages)
        self.times.extend([self._world.now] * len(messages))
        return OK

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]

    def clear(self) -> None:
        self.messages.clear()
        self.times.clear()


class Cluster:
    """One name server, some brokers, and everyone who talks to them."""

    def __init__(
        self,
        world: World,
        root: Path,
        profile: Profile,
        reset_mode: ResetMode,
        exits: AsyncExitStack,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.world = world
        self.profile = profile
        self._reset_mode = reset_mode
        self._config = config or {}
        self.brokers: dict[str, Broker] = {}
        self.events = Events(world)
        self._root = root
        self._exits = exits
        self._hosts = 0
        self._runtimes: dict[str, Runtime] = {}
        self._namesrv_runtime, self._namesrv_host = self.runtime()
        self._namesrv: NameServer

    def at_exit(self, close: Callable[[], Awaitable[None]]) -> None:
        """What is awaited when the scene is over; the latest first."""
        self._exits.push_async_callback(close)

    @property
    def namesrv(self) -> str:
        return self._namesrv.address

    def runtime(self, stall: Stall | None = None) -> tuple[Runtime, str]:
        self._hosts += 1
        host = f"10.0.1.{self._hosts}"
        return self.world.runtime(host, probe=self.events, stall=stall), host

    async def start(self, brokers: int, queues: int, store: dict[str, Any]) -> None:
        await self.start_namesrv()
        for number in range(brokers):
            await self.start_broker(f"broker-{'abc'[number]}", queues, store)

    async def start_namesrv(self) -> None:
        """Always at the same address."""
        config = NamesrvConfig(bind_address=self._namesrv_host, listen_port=9876, profile=self.profile)
        self._namesrv = NameServer(self._namesrv_runtime, config)
        self._exits.push_async_callback(self._namesrv.close)
        await self._namesrv.start()

    async def stop_namesrv(self) -> None:
        await self._namesrv.close()

    async def start_broker(self, name: str, queues: int, store: dict[str, Any]) -> Broker:
        runtime, host = self.runtime()
        sizes = {"mapped_file_size_commit_log": LOG_BYTES, "mapped_file_size_consume_queue": 60_000}
        broker = Broker(
            runtime,
            BrokerConfig(
                broker_name=name,
                bind_address=host,
                listen_port=0,
                namesrv_addr=self.namesrv,
                store_path_root_dir=str(self._root / name),
                default_topic_queue_nums=queues,
                profile=self.profile,
                reset_mode=self._reset_mode,
                store=StoreConfig(**{"physical_memory_bytes": 1 << 30, **sizes, **store}),
                **self._config,
            ),
        )
        await self._run_broker(name, broker)
        self._runtimes[name] = runtime
        return broker

    async def restart_broker(self, name: str = "broker-a") -> None:
        """Stop a broker in order, and start it at the same address over the same store."""
        broker = self.brokers[name]
        config = msgspec.structs.replace(
            broker.context.config, listen_port=int(broker.address.rpartition(":")[2])
        )
        await broker.close()
        await self._run_broker(name, Broker(self._runtimes[name], config))

    async def _run_broker(self, name: str, broker: Broker) -> None:
        self._exits.push_async_callback(broker.close)
        await broker.start()
        self.brokers[name] = broker

    async def producer(self, **options: Any) -> Producer:
        producer = Producer("P", self.namesrv, runtime=self.runtime()[0], profile=self.profile, **options)
        await self._exits.enter_async_context(producer)
        return producer

    async def admin(self) -> AdminClient:
        admin = AdminClient(self.namesrv, runtime=self.runtime()[0], profile=self.profile)
        await self._exits.enter_async_context(admin)
        return admin

    async def pull_consumer(
        self, group: str = "G", *, stall: Stall | None = None, **options: Any
    ) -> PullConsumer:
        runtime = self.runtime(stall)[0]
        consumer = PullConsumer(group, self.namesrv, runtime=runtime, profile=self.profile, **options)
        await self._exits.enter_async_context(consumer)
        return consumer

    def push_consumer(
        self,
        listener: Any,
        *,
        name: str = "c1",
        group: str = "G",
        topic: str = "T",
        expression: str | MessageSelector = "*",
        stall: Stall | None = None,
        **options: Any,
    ) -> PushConsumer:
        """Made, not started."""
        options.setdefault("consume_from_where", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        options.setdefault("profile", self.profile)
        runtime = self.runtime(stall)[0]
        consumer = PushConsumer(group, self.namesrv, runtime=runtime, instance_name=name, **options)
        consumer.subscribe(topic, expression)
        if listener is not None:
            consumer.register_message_listener(listener)
        return consumer

    async def consume(self, listener: Any, **options: Any) -> PushConsumer:
        """A started push consumer."""
        consumer = self.push_consumer(listener, **options)
        await self._exits.enter_async_context(consumer)
        return consumer

    async def create_topic(self, topic: str = "T", queues: int = 4) -> None:
        """On every broker."""
        admin = await self.admin()
        for broker in self.brokers.values():
            config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            await admin.create_and_update_topic_config(broker.address, config)

    async def fill(self, per_queue: int, topic: str = "T", *, first: int = 0) -> None:
        """The same numbered messages into every queue of the topic."""
        producer = await self.producer()
        numbers = range(first, first + per_queue)
        for queue in await producer.fetch_publish_message_queues(topic):
            for start in range(0, per_queue, 500):
                batch = [Message(topic, b"%d" % number) for number in numbers[start : start + 500]]
                await producer.send_batch(batch, queue=queue)

    def stored(self, topic: str = "T", group: str = "G", broker: str = "broker-a") -> dict[int, int]:
        """What the broker has stored, by queue id."""
        return dict(self.brokers[broker].context.offsets.offsets_of(group, topic))


Scene = Callable[[Cluster], Awaitable[None]]


def play(
    scene: Scene,
    root: Path,
    profile: Profile = Profile.V49,
    *,
    brokers: int = 1,
    queues: int = 4,
    store: dict[str, Any] | None = None,
    reset_mode: ResetMode = ResetMode.CLASSIC,
    seed: int = 1,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Run a scene against a cluster of one profile.

    Args:
        config: further fields of each broker's ``BrokerConfig``.
    """
    world = World(seed)

    async def main() -> None:
        async with AsyncExitStack() as exits:
            cluster = Cluster(world, root, profile, reset_mode, exits, config)
            await cluster.start(brokers, queues, store or {})
            await scene(cluster)

    world.run(main())


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Let virtual time pass until something holds; fails after ``seconds``."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it never came to hold"
        await asyncio.sleep(0.01)
