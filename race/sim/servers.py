"""SimServers: a name server and brokers inside a world, each on a host of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.cluster.names import broker_names
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.config.property_file import PropertyEntry, convert_properties
from rewindmq.protocol.points import Probe
from rewindmq.race.errors import RaceError
from rewindmq.race.sim.world import World

NAMESRV_HOST: Final = "10.0.0.2"
_NAMESRV_PORT: Final = 9876
_BROKER_PORT: Final = 10_911
_ROOT: Final = Path("/store")
# The run must not depend on the machine's memory.
_MEMORY_BYTES: Final = 1 << 30


class SimServers:
    """The servers of one simulated cluster.

    Args:
        config: the configuration that all brokers share, of ``sim_broker_config``.
        brokers: number of brokers.
        probe_of: returns the probe of a server's next life, by the server's name.

    Attributes:
        namesrv_address: ``host:port`` of the name server.
        hosts: the host of each broker, by its name.
    """

    namesrv_address: Final = f"{NAMESRV_HOST}:{_NAMESRV_PORT}"

    def __init__(
        self,
        world: World,
        config: BrokerConfig,
        brokers: int,
        probe_of: Callable[[str], Probe | None] = lambda name: None,
    ) -> None:
        self._world = world
        self._config = config
        self._probe_of = probe_of
        self._brokers: dict[str, Broker] = {}
        self.hosts = {name: f"10.0.1.{n}" for n, name in enumerate(broker_names(brokers), 1)}

    @property
    def broker_addresses(self) -> list[str]:
        """``host:port`` of each broker."""
        return [f"{host}:{_BROKER_PORT}" for host in self.hosts.values()]

    async def start_namesrv(self) -> None:
        """Start the name server; it knows no broker until the brokers register."""
        config = NamesrvConfig(
            bind_address=NAMESRV_HOST, listen_port=_NAMESRV_PORT, profile=self._config.profile
        )
        server = NameServer(self._world.runtime(NAMESRV_HOST), config)
        await self._world.spawn(NAMESRV_HOST, server.start())

    async def start_broker(self, name: str) -> None:
        """Start a broker with what the disk of its host holds."""
        host = self.hosts[name]
        runtime = self._world.runtime(host, probe=self._probe_of(name))
        config = msgspec.structs.replace(self._config, broker_name=name, bind_address=host)
        broker = Broker(runtime, config, self._world.disk(host))
        self._brokers[name] = broker
        await self._world.spawn(host, broker.start())

    def set_disk_full(self, name: str, is_full: bool) -> None:
        """Let a running broker act as if its disk were full, or no longer."""
        self._brokers[name].set_disk_full(is_full)

    def kill_all(self) -> None:
        """Kill every server, as at the end of a run."""
        for host in (*self.hosts.values(), NAMESRV_HOST):
            self._world.kill(host)


def sim_broker_config(
    keys: Mapping[str, Any], *, commit_log_file: int, max_message: int, **defaults: Any
) -> BrokerConfig:
    """Return the configuration that every broker of a simulated cluster shares.

    Args:
        keys: further keys of ``broker.conf``.
        commit_log_file: bytes of one file of the commit log.
        max_message: bytes of the largest message.
        defaults: fields of ``BrokerConfig`` that ``keys`` may replace.

    Raises:
        RaceError: brokers do not know a key.
        ConfigError: a value is invalid.
    """
    entries = [PropertyEntry(key, str(value), 0) for key, value in keys.items()]
    fields, unknown = convert_properties(BrokerConfig, entries, "broker_config")
    if unknown:
        raise RaceError(f"broker_config: brokers know no {', '.join(unknown)}")
    store = StoreConfig(
        mapped_file_size_commit_log=commit_log_file,
        mapped_file_size_consume_queue=20_000,
        max_message_size=max_message,
        physical_memory_bytes=_MEMORY_BYTES,
    )
    return BrokerConfig(
        **{
            "listen_port": _BROKER_PORT,
            "namesrv_addr": SimServers.namesrv_address,
            "store_path_root_dir": str(_ROOT),
            "store": store,
            **defaults,
            **fields,
        }
    )
