"""A local cluster used from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rewindmq.cluster.clients import ClusterClients
from rewindmq.cluster.server_process import ServerProcess

T = TypeVar("T")


class BlockingCluster(Protocol):
    """The part of ``LocalCluster`` that ``AsyncLocalCluster`` wraps."""

    @property
    def namesrv(self) -> ServerProcess: ...
    @property
    def namesrv_address(self) -> str: ...
    @property
    def client_options(self) -> Mapping[str, Any]: ...
    @property
    def brokers(self) -> Mapping[str, ServerProcess]: ...
    @property
    def slaves(self) -> Mapping[str, ServerProcess]: ...
    @property
    def directory(self) -> Path: ...
    def kill(self, name: str) -> None: ...
    def pause(self, name: str) -> None: ...
    def resume(self, name: str) -> None: ...
    def stop(self, name: str) -> None: ...
    def restart(self, name: str) -> None: ...
    @property
    def ahead_ms(self) -> int: ...
    def set_disk_full(self, name: str, is_full: bool) -> None: ...
    def set_clocks_ahead(self, milliseconds: int) -> None: ...
    def snapshot(self, name: str) -> None: ...
    def restore(self, name: str) -> None: ...
    def snapshots(self) -> list[str]: ...
    def save_snapshot(self, name: str, path: Path | str) -> None: ...
    def load_snapshot(self, name: str, path: Path | str) -> None: ...


class AsyncLocalCluster(ClusterClients):
    """A running ``LocalCluster`` whose slow operations leave the event loop free."""

    def __init__(self, cluster: BlockingCluster) -> None:
        self._cluster = cluster

    @property
    def namesrv(self) -> ServerProcess:
        """The name server's process."""
        return self._cluster.namesrv

    @property
    def namesrv_address(self) -> str:
        """The value that clients take as NAMESRV_ADDR, ``host:port``."""
        return self._cluster.namesrv_address

    @property
    def client_options(self) -> Mapping[str, Any]:
        """The options that each client inherits from the cluster."""
        return self._cluster.client_options

    @property
    def brokers(self) -> Mapping[str, ServerProcess]:
        """The masters' processes by broker name."""
        return self._cluster.brokers

    @property
    def slaves(self) -> Mapping[str, ServerProcess]:
        """The slaves' processes by name: ``broker-a-s1`` is the first slave of ``broker-a``."""
        return self._cluster.slaves

    @property
    def directory(self) -> Path:
        """The directory of configurations, stores and logs."""
        return self._cluster.directory

    async def kill(self, name: str) -> None:
        """See ``LocalCluster.kill``."""
        await run_in_thread(lambda: self._cluster.kill(name))

    def pause(self, name: str) -> None:
        """See ``LocalCluster.pause``."""
        self._cluster.pause(name)

    def resume(self, name: str) -> None:
        """See ``LocalCluster.resume``."""
        self._cluster.resume(name)

    async def stop(self, name: str) -> None:
        """See ``LocalCluster.stop``."""
        await run_in_thread(lambda: self._cluster.stop(name))

    async def restart(self, name: str) -> None:
        """See ``LocalCluster.restart``."""
        await run_in_thread(lambda: self._cluster.restart(name))

    @property
    def ahead_ms(self) -> int:
        """See ``LocalCluster.ahead_ms``."""
        return self._cluster.ahead_ms

    async def set_disk_full(self, name: str, is_full: bool) -> None:
        """See ``LocalCluster.set_disk_full``."""
        await run_in_thread(lambda: self._cluster.set_disk_full(name, is_full))

    async def set_clocks_ahead(self, milliseconds: int) -> None:
        """See ``LocalCluster.set_clocks_ahead``."""
        await run_in_thread(lambda: self._cluster.set_clocks_ahead(milliseconds))

    async def snapshot(self, name: str) -> None:
        """See ``LocalCluster.snapshot``."""
        await run_in_thread(lambda: self._cluster.snapshot(name))

    async def restore(self, name: str) -> None:
        """See ``LocalCluster.restore``."""
        await run_in_thread(lambda: self._cluster.restore(name))

    def snapshots(self) -> list[str]:
        """See ``LocalCluster.snapshots``."""
        return self._cluster.snapshots()

    async def save_snapshot(self, name: str, path: Path | str) -> None:
        """See ``LocalCluster.save_snapshot``."""
        await run_in_thread(lambda: self._cluster.save_snapshot(name, path))

    async def load_snapshot(self, name: str, path: Path | str) -> None:
        """See ``LocalCluster.load_snapshot``."""
        await run_in_thread(lambda: self._cluster.load_snapshot(name, path))


async def run_in_thread(function: Callable[[], T], on_cancel: Callable[[], None] | None = None) -> T:
    """Run a blocking call in a thread.

    If the caller is cancelled, ``on_cancel`` is called, and the cancellation takes effect when the call has
    ended.
    """
    work = asyncio.get_running_loop().run_in_executor(None, function)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        if on_cancel is not None:
            on_cancel()
        await asyncio.wait((work,))
        if not work.cancelled():
            work.exception()
        raise
