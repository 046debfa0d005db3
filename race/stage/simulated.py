"""A stage that runs every server and client in one process under virtual time, repeatable by its seed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from rewindmq.broker.config import BrokerConfig
from rewindmq.client.core.remedy import Remedy
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import Kind, Lab
from rewindmq.race.proxy.pattern import HoldHandle
from rewindmq.race.sim.servers import SimServers, sim_broker_config
from rewindmq.race.sim.world import World
from rewindmq.race.stage.base import BaseStage
from rewindmq.race.stage.consumer import make_consumer
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.listener import PlannedListener
from rewindmq.race.stage.operator import ADMIN, PRODUCER, Operator
from rewindmq.race.stage.stage import AT_ONCE, BROKER, ListenerPlan, consumer_process
from rewindmq.race.stage.stall import StallGate, StallHold, StallRule

_LAB_HOST: Final = "10.0.0.1"
_COMMIT_LOG_FILE: Final = 1 << 20
_MAX_MESSAGE: Final = 65_536


class _SimulatedConsumer:
    """A consumer on a host of its own."""

    def __init__(self, name: str, host: str, world: World, journal: Journal, gate: StallGate) -> None:
        self.name = name
        self._process = consumer_process(name)
        self._host = host
        self._world = world
        self._journal = journal
        self._runtime = world.runtime(host, probe=journal.probe(self._process), failpoint=gate)
        self._listener: PlannedListener
        self._consumer: PushConsumer

    async def start(
        self,
        namesrv: str,
        profile: Profile,
        remedy: Remedy | None,
        instance_name: str,
        plan: ListenerPlan,
        tags: str,
        options: Mapping[str, Any],
    ) -> None:
        self._listener = PlannedListener(plan, self._runtime.timers)
        self._consumer = make_consumer(
            self._runtime,
            namesrv,
            profile=profile,
            remedy=remedy,
            instance_name=instance_name,
            listener=self._listener,
            tags=tags,
            options=options,
        )
        self._journal.note(self._process, Lab.PROCESS_STARTED, profile=str(profile))
        await self._world.spawn(self._host, self._consumer.start())

    async def stop(self) -> None:
        await self._world.spawn(self._host, self._consumer.shutdown())
        self._journal.note(self._process, Lab.PROCESS_STOPPED)

    async def kill(self) -> None:
        self._world.kill(self._host)
        self._journal.note(self._process, Lab.PROCESS_KILLED)

    async def suspend(self) -> None:
        self._consumer.suspend()

    async def resume(self) -> None:
        await self._world.spawn(self._host, self._consumer.resume())

    async def release(self, offset: int) -> None:
        self._listener.release(offset)


class SimulatedStage(BaseStage):
    """A ``Stage`` inside ``world``; ``async with`` ends every server and client after the race."""

    _proxy_host = _LAB_HOST

    def __init__(self, world: World, profile: Profile, mode: ResetMode, remedy: Remedy | None = None) -> None:
        super().__init__(world.runtime(_LAB_HOST), profile, mode, remedy=remedy)
        self._world = world
        self._operator = Operator(
            self._journal,
            world.runtime(_LAB_HOST, probe=self._journal.probe(ADMIN)),
            world.runtime(_LAB_HOST, probe=self._journal.probe(PRODUCER)),
            profile=profile,
            mode=mode,
        )
        # Replaced by ``open``.
        self._servers = SimServers(world, BrokerConfig(), 0)
        self._namesrv = SimServers.namesrv_address
        self._consumer_count = 0
        self._gates: dict[str, StallGate] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Kill every host; later events are not recorded."""
        await self._finish()
        for number in range(self._consumer_count):
            self._world.kill(_consumer_host(number))
        await self._close_proxies()
        await self._operator.close()
        self._servers.kill_all()

    async def open(
        self,
        *,
        brokers: int = 1,
        queues: int = 1,
        consumers: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """See ``Stage``."""
        config = sim_broker_config(
            broker_config,
            commit_log_file=_COMMIT_LOG_FILE,
            max_message=_MAX_MESSAGE,
            profile=self.profile.release,
            reset_mode=self.mode,
        )
        self._servers = SimServers(self._world, config, brokers, self._journal.probe)
        await self._servers.start_namesrv()
        for name in self._servers.hosts:
            await self.start_broker(name)
        await self._operator.open(self._namesrv)
        await self._operator.create_topic(self._servers.broker_addresses, queues)

    async def consumer(
        self,
        name: str,
        *,
        listener: ListenerPlan = AT_ONCE,
        tags: str = "*",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> _SimulatedConsumer:
        """See ``Stage``."""
        entrance = await self._proxy_address(name)
        host = _consumer_host(self._consumer_count)
        self._consumer_count += 1
        consumer = _SimulatedConsumer(name, host, self._world, self._journal, self._gate(name))
        self.consumers[name] = consumer
        instance_name = self._instance_name(name)
        await consumer.start(entrance, self.profile, self.remedy, instance_name, listener, tags, options)
        return consumer

    async def kill_broker(self, name: str = BROKER) -> None:
        self._world.kill(self._servers.hosts[name])
        self._journal.note(name, Lab.PROCESS_KILLED)

    async def start_broker(self, name: str = BROKER) -> None:
        """See ``Stage``."""
        self._journal.note(name, Lab.PROCESS_STARTED)
        await self._servers.start_broker(name)

    def hold_stall(self, kind: Kind, *, consumer: str, **wanted: Any) -> HoldHandle:
        """See ``Stage``."""
        rule = StallRule(kind, wanted, lambda: hold.catch())
        hold = StallHold(kind, self._lab.timers, rule.release)
        self._gate(consumer).rules.append(rule)
        return hold

    def _gate(self, consumer: str) -> StallGate:
        return self._gates.setdefault(consumer, StallGate())


def _consumer_host(number: int) -> str:
    return f"10.0.2.{number + 1}"
