"""Simulated cluster: the real servers and clients of a model, each on its own host, under virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.client.push.reset import ResetState
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.listener import ExploredListener, Place
from rewindmq.race.explore.model.model import Model, PlannedReset
from rewindmq.race.explore.model.operator import ADMIN, ADMIN_HOST, PRODUCER, PRODUCER_HOST, ExploredOperator
from rewindmq.race.explore.model.recorder import ModelJournal
from rewindmq.race.explore.schedule.flight import ExploredFabric
from rewindmq.race.explore.schedule.loop import ExploredLoop
from rewindmq.race.explore.schedule.scheduler import Scheduler
from rewindmq.race.explore.schedule.step import EVERYWHERE, Action
from rewindmq.race.history import Lab
from rewindmq.race.sim.network import Fabric
from rewindmq.race.sim.world import World
from rewindmq.race.stage.stage import BROKER, GROUP, TOPIC, consumer_process

T = TypeVar("T")

_LAB_HOST: Final = "10.0.0.1"
_NAMESRV_HOST: Final = "10.0.0.2"
_BROKER_HOST: Final = "10.0.1.1"
_NAMESRV: Final = f"{_NAMESRV_HOST}:9876"
_BROKER_PORT: Final = 10_911
# Consumers start at different times, so that only a common cause makes two of them act at the same moment.
_STAGGER_SECONDS: Final = 0.37
# Two threads: while one is blocked, the other continues.
_THREADS: Final = 2
# A killed process keeps what it wrote, so the models do not depend on when the log is synced.
_RARELY_MS: Final = 3_600_000


class ExploredWorld(World):
    """World in which a scheduler decides what happens next. It stands still between two calls of ``play``."""

    def __init__(self, names: dict[str, str], watched: Collection[str]) -> None:
        self._names = names
        super().__init__(0, latency=(0.0, 0.0))
        self._loop = loop = ExploredLoop()
        self.scheduler = Scheduler(loop, self.fabric, self.name_of, watched)
        loop.when_idle = self.scheduler.make_ready

    def name_of(self, host: str) -> str:
        """Return the name of a host in steps and histories."""
        return self._names.get(host, host)

    def play(self, scene: Coroutine[Any, Any, T]) -> T:
        """Run until ``scene`` returns; then every process stands still."""
        assert self._loop is not None
        return self._loop.run_until_complete(scene)

    def begin(self, scene: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Make ``scene`` ready; ``go_on`` runs it."""
        loop = self._loop
        assert loop is not None
        task = loop.create_task(scene)
        task.add_done_callback(lambda _: loop.stop())
        return task

    def go_on(self) -> None:
        """Run until the scene that was begun returns, or until a chooser pauses the world."""
        assert self._loop is not None
        self._loop.run_forever()

    def _new_fabric(self, rng: random.Random, latency: tuple[float, float]) -> Fabric:
        self.fabric = ExploredFabric(self.name_of, TOPIC)
        return self.fabric


class _ConsumerHost:
    """Consumer of the group, on a host of its own."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.host = f"10.0.2.{number + 1}"
        self.process = consumer_process(name)
        self.consumer: PushConsumer | None = None
        self.listener: ExploredListener | None = None
        self.is_killed = False

    def is_settled(self, ends: Mapping[MessageQueue, int]) -> bool:
        """True if only blocked listeners run, and every offset in memory is the end of its queue."""
        consumer, listener = self.consumer, self.listener
        if self.is_killed or consumer is None or listener is None:
            return True
        if (
            listener.running > listener.blocked_count
            or consumer.is_suspended
            or consumer.reset_state is not ResetState.RUNNING
        ):
            return False
        known = consumer.offset_store.offsets()
        return all(offset == ends.get(queue, offset) for queue, offset in known.items())


class SimulatedCluster:
    """The servers, the consumers, the administrator and the producer of a model.

    Args:
        profile: profile of the consumers; the servers imitate the same release.
    """

    def __init__(self, model: Model, mode: ResetMode, profile: Profile) -> None:
        self.model = model
        self.mode = mode
        self.profile = profile
        self.consumer_hosts = [
            _ConsumerHost(name, number) for number, name in enumerate((*model.consumers, *model.joins))
        ]
        names = {_NAMESRV_HOST: "namesrv", ADMIN_HOST: ADMIN, PRODUCER_HOST: PRODUCER, _BROKER_HOST: BROKER}
        names.update((node.host, node.process) for node in self.consumer_hosts)
        self.world = ExploredWorld(names, [_BROKER_HOST, *(node.host for node in self.consumer_hosts)])
        self.broker: Broker | None = None
        self._lab = self.world.runtime(_LAB_HOST)
        self.recorder = ModelJournal(self._lab, self._note)
        self._seen: set[Place] = set()
        self._operator = ExploredOperator(self.world, self.recorder, mode)

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler, which exists only while the world runs."""
        return self.world.scheduler

    def _note(self) -> None:
        self.scheduler.note()

    # Before the window.

    async def come_to_rest(self) -> None:
        """Start every process, and wait until the consumers have consumed all messages."""
        model, world = self.model, self.world
        server = NameServer(
            world.runtime(_NAMESRV_HOST),
            NamesrvConfig(bind_address=_NAMESRV_HOST, profile=self.profile.release),
        )
        await world.spawn(_NAMESRV_HOST, server.start())
        await self._start_broker()
        operator = self._operator
        await operator.open(_NAMESRV, self.profile.release)
        await operator.create_topic(f"{_BROKER_HOST}:{_BROKER_PORT}", model.queues)
        for node in self.consumer_hosts[: len(model.consumers)]:
            await self.sleep(_STAGGER_SECONDS)
            await self._start_consumer(node)
        await self.sleep(_STAGGER_SECONDS)
        for queue_id in range(model.queues):
            for _ in range(model.messages):
                await operator.send(_queue(queue_id))
                await self.sleep(_STAGGER_SECONDS)
        if not model.sends:
            operator.end_producer()
        # Wait until the broker has answered every suspended pull and has suspended the next one.
        pulls = self._suspended_count()
        while self._suspended_count() < pulls + model.queues:
            await self.sleep(_STAGGER_SECONDS)

    def _suspended_count(self) -> int:
        return sum(
            1
            for _, _, kind, details in self.recorder.events
            if kind is Point.PULL_SUSPENDED and details["topic"] == TOPIC
        )

    async def sleep(self, seconds: float) -> None:
        """Sleep for ``seconds`` of virtual time."""
        await self._lab.timers.sleep(seconds)

    async def _start_broker(self) -> None:
        config = BrokerConfig(
            broker_name=BROKER,
            bind_address=_BROKER_HOST,
            listen_port=_BROKER_PORT,
            namesrv_addr=_NAMESRV,
            store_path_root_dir=str(Path("/store")),
            profile=self.profile.release,
            reset_mode=self.mode,
            flush_interval_commit_log=_RARELY_MS,
            flush_consume_queue_thorough_interval=_RARELY_MS,
            store=StoreConfig(
                mapped_file_size_commit_log=1 << 16,
                mapped_file_size_consume_queue=2_000,
                max_message_size=4_096,
                physical_memory_bytes=1 << 30,
            ),
        )
        runtime = self.world.runtime(_BROKER_HOST, probe=self.recorder.probe(BROKER))
        self.recorder.note(BROKER, Lab.PROCESS_STARTED)
        self.broker = Broker(runtime, config, self.world.disk(_BROKER_HOST))
        await self.world.spawn(_BROKER_HOST, self.broker.start())

    async def _start_consumer(self, node: _ConsumerHost) -> None:
        runtime = self.world.runtime(node.host, probe=self.recorder.probe(node.process))
        consumer = PushConsumer(
            GROUP,
            _NAMESRV,
            runtime=runtime,
            profile=self.profile,
            instance_name=node.name,
            client_ip=node.host,
            consume_thread_max=_THREADS,
        )
        listener = ExploredListener(
            node.host,
            node.process,
            runtime.timers,
            seen=self._seen,
            blocked=self.model.blocked,
            again_seconds=self.model.again_seconds,
            offer=self.scheduler.offer,
        )
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(listener)
        node.consumer, node.listener = consumer, listener
        self.recorder.note(node.process, Lab.PROCESS_STARTED, profile=str(self.profile))
        await self.world.spawn(node.host, consumer.start())
        # No message ever fails, so pulls of the retry topic would only add choices.
        self.world.call(node.host, consumer.unsubscribe, retry_topic(GROUP))

    # The window.

    def begin(self) -> None:
        """Start the first reset, and offer the other actions to the schedule."""
        model, offer = self.model, self.scheduler.offer
        self._reset(model.resets[0])
        for number, reset in enumerate(model.resets[1:], 2):
            name = f"reset {number} to {reset.offset} begins"
            run = partial(self._reset, reset)
            offer(Action(name, ADMIN_HOST, run, is_forced=True, may_be_last=False))
        for number in range(1, model.sends + 1):
            offer(Action(f"message {number} is sent", PRODUCER_HOST, self._send))
        for node in self.consumer_hosts:
            if node.name in model.joins:
                offer(Action(f"{node.process} starts", node.host, partial(self._join, node)))
            if node.process in model.crashes:
                offer(Action(f"{node.process} is killed", EVERYWHERE, partial(self._kill, node)))
        if BROKER in model.crashes:
            offer(Action(f"{BROKER} is killed", EVERYWHERE, self._kill_broker))

    def _reset(self, reset: PlannedReset) -> None:
        self.world.spawn(_LAB_HOST, self._operator.reset(reset.offset, _queue(0)))

    def _send(self) -> None:
        self.world.spawn(_LAB_HOST, self._operator.send(_queue(0)))

    def _join(self, node: _ConsumerHost) -> None:
        self.world.spawn(_LAB_HOST, self._start_consumer(node))

    def _kill(self, node: _ConsumerHost) -> None:
        self.world.kill(node.host)
        node.is_killed = True
        self.recorder.note(node.process, Lab.PROCESS_KILLED)

    def _kill_broker(self) -> None:
        self.world.kill(_BROKER_HOST)
        self.broker = None
        self.recorder.note(BROKER, Lab.PROCESS_KILLED)
        name = f"{BROKER} starts again"
        run = self._restart_broker
        self.scheduler.offer(Action(name, EVERYWHERE, run, is_forced=True, may_be_last=False))

    def _restart_broker(self) -> None:
        self.world.spawn(_LAB_HOST, self._start_broker())

    def is_settled(self) -> bool:
        """True if no stored offset can change any more and all sent messages have been consumed.

        Call it while nothing is in flight. Blocked listeners may still return. The check only saves time: the
        laws are judged by the history.
        """
        if self.broker is None or self._operator.is_busy:
            return False
        store, offsets = self.broker.context.store, self.broker.context.offsets.table
        ends = {_queue(number): store.max_offset(TOPIC, number) for number in range(self.model.queues)}
        if any(offsets.query(GROUP, TOPIC, queue.queue_id) != end for queue, end in ends.items()):
            return False
        if self.broker.context.pulls.long_polling.suspended_count != self.model.queues:
            return False
        return all(node.is_settled(ends) for node in self.consumer_hosts)


def _queue(queue_id: int) -> MessageQueue:
    return MessageQueue(TOPIC, BROKER, queue_id)
