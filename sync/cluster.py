"""A local cluster whose clients are synchronous."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rewindmq.client.produce.transaction import TransactionListener
from rewindmq.cluster.local_cluster import LocalCluster as Cluster
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.sync.admin import AdminClient
from rewindmq.sync.consumers import LitePullConsumer, PullConsumer, PushConsumer
from rewindmq.sync.producers import Producer, TransactionProducer


class LocalCluster:
    """A name server and brokers, started together as processes of this machine.

    The options are those of ``rewindmq.LocalCluster``. The clients that it creates inherit its name server,
    time scale, profile and seed; keyword options are those of the client's class and override the cluster's.
    """

    def __init__(self, brokers: int = 2, **options: Any) -> None:
        self._cluster = Cluster(brokers, **options)

    @property
    def namesrv_address(self) -> str:
        """The value that clients take as NAMESRV_ADDR, ``host:port``."""
        return self._cluster.namesrv_address

    @property
    def namesrv(self) -> ServerProcess:
        """The name server's process."""
        return self._cluster.namesrv

    @property
    def brokers(self) -> dict[str, ServerProcess]:
        """The masters' processes by broker name."""
        return self._cluster.brokers

    @property
    def slaves(self) -> dict[str, ServerProcess]:
        """The slaves' processes by name."""
        return self._cluster.slaves

    @property
    def directory(self) -> Path:
        """The directory of configurations, stores and logs."""
        return self._cluster.directory

    def start(self) -> None:
        """Start all processes; see ``rewindmq.LocalCluster.start``."""
        self._cluster.start()

    def close(self) -> None:
        """Stop all processes; see ``rewindmq.LocalCluster.close``."""
        self._cluster.close()

    def kill(self, name: str) -> None:
        """Kill one process by its name with SIGKILL."""
        self._cluster.kill(name)

    def stop(self, name: str) -> None:
        """Stop one process in order."""
        self._cluster.stop(name)

    def restart(self, name: str) -> None:
        """Start a process again with its store and port."""
        self._cluster.restart(name)

    def snapshot(self, name: str) -> None:
        """Take a snapshot of the cluster; see ``rewindmq.LocalCluster.snapshot``."""
        self._cluster.snapshot(name)

    def restore(self, name: str) -> None:
        """Put the cluster back to a snapshot; see ``rewindmq.LocalCluster.restore``."""
        self._cluster.restore(name)

    def snapshots(self) -> list[str]:
        """Return the names of the cluster's snapshots, sorted."""
        return self._cluster.snapshots()

    def save_snapshot(self, name: str, path: Path | str) -> None:
        """Write a snapshot to one file."""
        self._cluster.save_snapshot(name, path)

    def load_snapshot(self, name: str, path: Path | str) -> None:
        """Read a snapshot from one file."""
        self._cluster.load_snapshot(name, path)

    def pause(self, name: str) -> None:
        """Pause one process with SIGSTOP."""
        self._cluster.pause(name)

    def resume(self, name: str) -> None:
        """Let a paused process continue."""
        self._cluster.resume(name)

    def producer(self, group: str, /, **options: Any) -> Producer:
        """Create a ``Producer`` of a group."""
        return Producer(group, self.namesrv_address, **self._with_inherited(options))

    def transaction_producer(
        self, group: str, /, *, listener: TransactionListener, **options: Any
    ) -> TransactionProducer:
        """Create a ``TransactionProducer`` of a group."""
        options = self._with_inherited({**options, "listener": listener})
        return TransactionProducer(group, self.namesrv_address, **options)

    def push_consumer(self, group: str, /, **options: Any) -> PushConsumer:
        """Create a ``PushConsumer`` of a group."""
        return PushConsumer(group, self.namesrv_address, **self._with_inherited(options))

    def pull_consumer(self, group: str, /, **options: Any) -> PullConsumer:
        """Create a ``PullConsumer`` of a group."""
        return PullConsumer(group, self.namesrv_address, **self._with_inherited(options))

    def lite_pull_consumer(self, group: str, /, **options: Any) -> LitePullConsumer:
        """Create a ``LitePullConsumer`` of a group."""
        return LitePullConsumer(group, self.namesrv_address, **self._with_inherited(options))

    def admin(self, /, **options: Any) -> AdminClient:
        """Create an ``AdminClient``."""
        return AdminClient(self.namesrv_address, **self._with_inherited(options))

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster.__exit__(kind, error, trace)

    def _with_inherited(self, options: dict[str, Any]) -> dict[str, Any]:
        return {**self._cluster.client_options, **options}
