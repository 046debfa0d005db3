"""A stage that runs every server and client in one process under virtual time, repeatable by its seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

import msgspec

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.client.core.remedy import Remedy
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.cluster.names import broker_names
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.config.property_file import Property, convert_properties
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Kind, Lab
from rewindmq.race.proxy.pattern import Hold
from rewindmq.race.sim.world import World
from rewindmq.race.stage.base import BaseStage
from rewindmq.race.stage.consumer import make_consumer
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.listener import PlannedListener
from rewindmq.race.stage.operator import ADMIN, PRODUCER, Operator
from rewindmq.race.stage.stage import AT_ONCE, BROKER, ListenerPlan, consumer_process
from rewindmq.race.stage.stall import StallGate, StallHold, StallRule

_LAB_HOST: Final = "10.0.0.1"
_NAMESRV_HOST: Final = "10.0.0.2"
_NAMESRV_PORT: Final = 9876
_NAMESRV: Final = f"{_NAMESRV_HOST}:{_NAMESRV_PORT}"
_BROKER_PORT: Final = 10_911
_ROOT: Final = Path("/store")
_STORE: Final = StoreConfig(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=20_000,
    max_message_size=65_536,
    # The run must not depend on the machine's memory.
    physical_memory_bytes=1 << 30,
)


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
        self._broker_hosts: dict[str, str] = {}
        self._broker_config = BrokerConfig()
        self._namesrv = _NAMESRV
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
        for host in (*self._broker_hosts.values(), _NAMESRV_HOST):
            self._world.kill(host)

    async def open(
        self,
        *,
        brokers: int = 1,
        queues: int = 1,
        consumers: int = 1,
        broker_config: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """See ``Stage``."""
        release = self.profile.release
        config = NamesrvConfig(bind_address=_NAMESRV_HOST, listen_port=_NAMESRV_PORT, profile=release)
        server = NameServer(self._world.runtime(_NAMESRV_HOST), config)
        await self._world.spawn(_NAMESRV_HOST, server.start())
        self._broker_config = _broker_config(release, self.mode, broker_config)
        self._broker_hosts = {name: f"10.0.1.{n}" for n, name in enumerate(broker_names(brokers), 1)}
        for name in self._broker_hosts:
            await self.start_broker(name)
        await self._operator.open(_NAMESRV)
        await self._operator.create_topic(
            [f"{host}:{_BROKER_PORT}" for host in self._broker_hosts.values()], queues
        )

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
        self._world.kill(self._broker_hosts[name])
        self._journal.note(name, Lab.PROCESS_KILLED)

    async def start_broker(self, name: str = BROKER) -> None:
        """See ``Stage``."""
        host = self._broker_hosts[name]
        runtime = self._world.runtime(host, probe=self._journal.probe(name))
        config = msgspec.structs.replace(self._broker_config, broker_name=name, bind_address=host)
        self._journal.note(name, Lab.PROCESS_STARTED)
        broker = Broker(runtime, config, self._world.disk(host))
        await self._world.spawn(host, broker.start())

    def hold_stall(self, kind: Kind, *, consumer: str, **wanted: Any) -> Hold:
        """See ``Stage``."""
        rule = StallRule(kind, wanted, lambda: hold.catch())
        hold = StallHold(kind, self._lab.timers, rule.release)
        self._gate(consumer).rules.append(rule)
        return hold

    def _gate(self, consumer: str) -> StallGate:
        return self._gates.setdefault(consumer, StallGate())


def _consumer_host(number: int) -> str:
    return f"10.0.2.{number + 1}"


def _broker_config(release: Profile, mode: ResetMode, keys: Mapping[str, Any]) -> BrokerConfig:
    """Return the configuration that every broker shares.

    Raises:
        RaceError: brokers do not know a key.
        ConfigError: a value is invalid.
    """
    entries = [Property(key, str(value), 0) for key, value in keys.items()]
    fields, unknown = convert_properties(BrokerConfig, entries, "broker_config")
    if unknown:
        raise RaceError(f"broker_config: brokers know no {', '.join(unknown)}")
    return BrokerConfig(
        **{
            "listen_port": _BROKER_PORT,
            "namesrv_addr": _NAMESRV,
            "store_path_root_dir": str(_ROOT),
            "profile": release,
            "reset_mode": mode,
            "store": _STORE,
            **fields,
        }
    )
