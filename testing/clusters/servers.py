"""Servers: a test's access to a cluster, and the state of the cluster's processes."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.testing.errors import KitError
from rewindmq.testing.waiting.waiter import POLL_SECONDS

_LOG_BYTES: Final = 16_384
_TOKEN_BYTES: Final = 3
# The snapshot of the time before a test's first travel.
_PRESENT: Final = "before-travel"


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the servers are, and which process runs them.

    Attributes:
        namesrv_address: ``host:port`` of the name servers.
        client_options: the options that all clients need, such as ``time_scale``.
        local: the cluster, if the kit started it.
        first: the snapshot from which each test starts; "" if there is none.
    """

    namesrv_address: str
    client_options: Mapping[str, Any]
    local: LocalCluster | None = None
    first: str = ""
    # Names of brokers that act as if their disks were full.
    full: set[str] = field(default_factory=set)

    @property
    def processes(self) -> dict[str, ServerProcess]:
        """All processes by name; empty for a cluster that runs elsewhere."""
        if self.local is None:
            return {}
        return {self.local.namesrv.name: self.local.namesrv, **self.local.brokers, **self.local.slaves}

    def require_local(self, what: str) -> AsyncLocalCluster:
        """Return the cluster, to control its processes.

        Raises:
            KitError: the cluster runs elsewhere.
        """
        if self.local is None:
            raise KitError(
                f"{what} needs a cluster of the kit's own, but the test runs against {self.namesrv_address};"
                " omit --rewindmq-namesrv"
            )
        return AsyncLocalCluster(self.local)

    @property
    def is_own(self) -> bool:
        """True if the kit started the cluster."""
        return self.local is not None

    @property
    def is_for_one_test(self) -> bool:
        """True if the cluster ends with the test, so that nothing has to be deleted."""
        return False

    @property
    def poll_intervals(self) -> tuple[float, float]:
        """The intervals of waits that ask the brokers; see ``Waiter``."""
        return POLL_SECONDS, POLL_SECONDS

    def options_for(self, client: str) -> dict[str, Any]:
        """Return the options of a client; ``client`` says what it is."""
        return dict(self.client_options)

    def consumer_starts(self) -> None:
        """Note that a consumer is about to start, or that one of the application may run."""

    def new_token(self) -> str:
        """Return a suffix that makes a test's names different from those of other tests."""
        return secrets.token_hex(_TOKEN_BYTES)

    async def kill(self, name: str) -> None:
        """End a process with SIGKILL."""
        await self.require_local("kill").kill(name)

    async def restart(self, name: str) -> None:
        """Start a process again."""
        await self.require_local("restart").restart(name)

    def pause(self, name: str) -> None:
        """Stop a process with SIGSTOP."""
        self.require_local("paused").pause(name)

    def resume(self, name: str) -> None:
        """Continue a process with SIGCONT."""
        self.require_local("paused").resume(name)

    async def set_disk_full(self, name: str, is_full: bool) -> None:
        """Let a broker act as if its disk were full, or as its disk is."""
        await self.require_local("disk_full").set_disk_full(name, is_full)
        (self.full.add if is_full else self.full.discard)(name)

    async def travel(self, seconds: float) -> None:
        """Move the brokers' wall clocks forward by ``seconds`` of the cluster's time."""
        cluster = self.require_local("travel")
        if not self.ahead_ms:
            await cluster.snapshot(_PRESENT)
        scale = cluster.client_options["time_scale"]
        await cluster.set_clocks_ahead(cluster.ahead_ms + round(seconds * 1_000 * scale))

    @property
    def ahead_ms(self) -> int:
        """How far the brokers' wall clocks are ahead of this process's, in ms."""
        return 0 if self.local is None else self.local.ahead_ms

    @property
    def has_travelled(self) -> bool:
        """True from a test's first travel until ``restore`` has put the cluster back."""
        return self.local is not None and _PRESENT in self.local.snapshots()

    @property
    def is_namesrv_running(self) -> bool:
        """True unless the test has ended the name server."""
        return self.local is None or self.local.namesrv.is_running

    def running_masters(self) -> set[str]:
        """Return the names of the masters that run; empty for a cluster that runs elsewhere."""
        if self.local is None:
            return set()
        return {name for name, process in self.local.brokers.items() if process.is_running}

    async def begin(self) -> None:
        """Put the cluster back to the snapshot from which tests start, if there is one."""
        if self.first:
            await self.restore_snapshot(self.first)

    async def snapshot(self, name: str) -> None:
        """Take a snapshot; one of the same name is replaced.

        Raises:
            KitError: the cluster runs elsewhere, or the kit itself uses the name.
            ClusterError: the name is invalid, or a process does not run or is paused.
        """
        _refuse_own_name(name)
        await self.require_local("a snapshot").snapshot(name)

    async def load_snapshot(self, name: str, path: Path | str) -> None:
        """Read a file as the snapshot ``name``.

        Raises:
            KitError: the cluster runs elsewhere, or the kit itself uses the name.
            ClusterError: the file cannot be used; the text says why.
        """
        _refuse_own_name(name)
        await self.require_local("a snapshot").load_snapshot(name, path)

    async def restore_snapshot(self, name: str) -> None:
        """Put the cluster back to a snapshot; paused processes run afterwards.

        Raises:
            KitError: the cluster runs elsewhere.
            ClusterError: there is no such snapshot, or a process did not start.
        """
        await self.require_local("a snapshot").restore(name)

    async def restore(self) -> bool:
        """Undo what a test did to the processes; return True if one was started.

        Paused processes continue, clocks and disks are real again, and processes that a test ended start.
        """
        if self.local is None:
            return False
        was_started = False
        cluster = AsyncLocalCluster(self.local)
        for process in self.processes.values():
            if process.is_running and process.is_paused:
                process.resume()
        for name in sorted(self.full):
            await cluster.set_disk_full(name, False)
        self.full.clear()
        # The snapshot stays until it is restored, also if this is cancelled in between.
        has_travelled = self.has_travelled
        if self.ahead_ms:
            await cluster.set_clocks_ahead(0)
        for name, process in self.processes.items():
            if not process.is_running:
                await cluster.restart(name)
                was_started = True
        if has_travelled:
            # Stores that end in the future would give later messages and offsets by time wrong times.
            await cluster.restore(_PRESENT)
            await cluster.delete_snapshot(_PRESENT)
        return was_started or has_travelled


def _refuse_own_name(name: str) -> None:
    if name == _PRESENT:
        raise KitError(f"{name} is the snapshot of the time before a travel: choose another name")


def log_sizes(servers: Servers) -> dict[str, int]:
    """Return the size of each process's log in bytes, to read later what was added."""
    return {name: _size(process.log_path) for name, process in servers.processes.items()}


def logs_since(servers: Servers, sizes: Mapping[str, int]) -> dict[str, str]:
    """Return what each process has logged since ``log_sizes``, at most the last 16 KiB of each."""
    added = {}
    try:
        processes = servers.processes
    except ClusterError:
        # The cluster has ended, and its folder is gone.
        return {}
    for name, process in processes.items():
        start = max(sizes.get(name, 0), _size(process.log_path) - _LOG_BYTES)
        try:
            with process.log_path.open("rb") as log:
                log.seek(start)
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            continue
        if text:
            added[name] = text
    return added


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
