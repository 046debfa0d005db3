"""Servers: starts name servers and brokers of a test, each on a host of its own, and closes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.files.disk import Disk
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.points import Failpoint, Probe
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Network, Runtime
from rewindmq.protocol.remoting.stalls.record import Stalls
from tests.support.kernel import kernel_of_this_run

T = TypeVar("T")

NAMESRV_HOST = "10.0.0.1"
NAMESRV_PORT = 9876
BROKER_PORT = 10_911
# Small files, and of the machine's memory more than any test stores.
SMALL_STORE = StoreConfig(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=60_000,
    max_hash_slot_num=1_000,
    max_index_num=10_000,
    physical_memory_bytes=1 << 30,
)
NO_KEYS: Mapping[str, object] = MappingProxyType({})


class Servers:
    """Name servers and brokers; closed, the latest first, when the scenario is over.

    Args:
        make_runtime: the runtime of one process on a host.
        is_real: on real sockets: every server listens at 127.0.0.1, at a free port.
        profile: of everything started here unless said otherwise.
        serialize_type: codec of every peer and client unless said otherwise; None is each one's own default.

    Attributes:
        root: each broker's store lies below, under the broker's name.
        brokers: the newest master of each name.
        probe: given to everything started from now on.
        stalls: given to everything started from now on, if it is set.
        network: what the connections of everything started from now on are made by, given the usual network.
    """

    def __init__(
        self,
        make_runtime: Callable[[str], Runtime],
        root: Path,
        exits: AsyncExitStack,
        *,
        is_real: bool,
        profile: Profile = Profile.V49,
        serialize_type: SerializeType | None = None,
    ) -> None:
        self._make_runtime = make_runtime
        self._exits = exits
        self._is_real = is_real
        self._broker_hosts = 0
        self._client_hosts = 0
        self._runtimes: dict[str, Runtime] = {}
        self._namesrv: NameServer | None = None
        self._newest: Broker | None = None
        self.root = root
        self.profile = profile
        self.serialize_type = serialize_type
        self.probe: Probe | None = None
        self.stalls: Stalls | None = None
        self.network: Callable[[Network], Network] | None = None
        self.brokers: dict[str, Broker] = {}
        self.runtime = make_runtime("10.0.9.9")

    def at_exit(self, close: Callable[[], Awaitable[None]]) -> None:
        """What is awaited when the scenario is over; the latest first."""
        self._exits.push_async_callback(close)

    async def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """Enter a context that is left when the scenario is over."""
        return await self._exits.enter_async_context(context)

    def new_runtime(
        self, host: str | None = None, *, probe: Probe | None = None, failpoint: Failpoint | None = None
    ) -> Runtime:
        """The runtime of one more process, on a client's host of its own unless said otherwise."""
        if host is None:
            self._client_hosts += 1
            host = f"10.0.3.{self._client_hosts}"
        runtime = replace(
            self._make_runtime(host),
            probe=probe or self.probe,
            failpoint=failpoint,
            speedups=kernel_of_this_run(),
        )
        if self.stalls is not None:
            runtime = replace(runtime, stalls=self.stalls)
        return runtime if self.network is None else replace(runtime, network=self.network(runtime.network))

    @property
    def namesrv(self) -> str:
        """The address of the newest name server."""
        assert self._namesrv is not None, "no name server was started"
        return self._namesrv.address

    @property
    def broker(self) -> Broker:
        """The newest."""
        assert self._newest is not None, "no broker was started"
        return self._newest

    async def start_namesrv(self, *, profile: Profile | None = None, **switches: Any) -> NameServer:
        """Under virtual time always at the same address, so that the next one takes the last one's place."""
        place = self._place(NAMESRV_HOST, NAMESRV_PORT)
        config = msgspec.structs.replace(
            NamesrvConfig(), **{**place, "profile": profile or self.profile, **switches}
        )
        namesrv = NameServer(self.new_runtime(NAMESRV_HOST), config)
        self.at_exit(namesrv.close)
        await namesrv.start()
        self._namesrv = namesrv
        return namesrv

    async def stop_namesrv(self) -> None:
        assert self._namesrv is not None, "no name server was started"
        await self._namesrv.close()

    async def start_broker(
        self,
        name: str = "broker-a",
        *,
        profile: Profile | None = None,
        store: Mapping[str, object] = NO_KEYS,
        disk: Disk | None = None,
        **switches: Any,
    ) -> Broker:
        """A broker of the newest name server, if there is any, with these keys of ``BrokerConfig``.

        Args:
            store: keys of ``StoreConfig``, instead of those of ``SMALL_STORE``.
        """
        self._broker_hosts += 1
        host = f"10.0.1.{self._broker_hosts}"
        fields = {
            "broker_name": name,
            "namesrv_addr": self._namesrv.address if self._namesrv else None,
            "store_path_root_dir": str(self.root / name),
            "profile": profile or self.profile,
            "store": msgspec.structs.replace(SMALL_STORE, **store),
            **self._place(host, BROKER_PORT),
            **switches,
        }
        config = msgspec.structs.replace(BrokerConfig(), **fields)
        self._runtimes[name] = self.new_runtime(host)
        return await self._run(Broker(self._runtimes[name], config, disk))

    async def restart_broker(self, name: str = "broker-a") -> Broker:
        """Stop a broker in order, and start it at the same address over the same store."""
        broker = self.brokers[name]
        config = msgspec.structs.replace(
            broker.context.config, listen_port=int(broker.address.rpartition(":")[2])
        )
        await broker.close()
        return await self._run(Broker(self._runtimes[name], config))

    async def _run(self, broker: Broker) -> Broker:
        self.at_exit(broker.close)
        await broker.start()
        self._newest = broker
        if not broker.context.config.is_slave:
            self.brokers[broker.context.config.broker_name] = broker
        return broker

    def _place(self, host: str, port: int) -> dict[str, object]:
        if self._is_real:
            return {"bind_address": "127.0.0.1", "listen_port": 0}
        return {"bind_address": host, "listen_port": port}
