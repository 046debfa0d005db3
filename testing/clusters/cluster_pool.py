"""ClusterPool: starts the clusters of a test session, one for each set of options."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.signals import interrupted_instead_of_ended
from rewindmq.testing.clusters.options import ClusterOptions
from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.errors import KitError

# Clusters that run at the same time: another one replaces the one that was unused for longest.
MAX_CLUSTERS: Final = 4
# The snapshot that the option ``snapshot`` names.
_START: Final = "start"


class ClusterPool:
    """The clusters of one session; blocking. With pytest-xdist, each worker has its own.

    In a ``with`` statement, SIGTERM and SIGHUP interrupt the session as Ctrl-C does, so that its end removes
    the clusters' folders.

    Args:
        namesrv: the address of a running cluster; None starts clusters.
    """

    def __init__(self, namesrv: str | None = None) -> None:
        self._namesrv = namesrv
        # In the order of the last use.
        self._clusters: dict[ClusterOptions, Servers] = {}
        self._exits = ExitStack()

    def get(self, options: ClusterOptions) -> Servers:
        """Return a cluster with these options; start it at the first call.

        Raises:
            ClusterError: a process did not start, and notes have the end of its log; or the snapshot cannot
                be used.
            KitError: the options need an own cluster, but a running one was named.
        """
        if self._namesrv is not None:
            if options.broker_config or options.slaves or options.snapshot:
                raise KitError(
                    "broker_config, slaves and snapshot need a cluster of the kit's own;"
                    " omit --rewindmq-namesrv"
                )
            return Servers(self._namesrv, {"time_scale": options.time_scale, "profile": options.profile})
        servers = self._clusters.pop(options, None)
        if servers is None:
            self._make_room()
            servers = _start(options)
        self._clusters[options] = servers
        return servers

    def close(self) -> None:
        """Stop all clusters."""
        while self._clusters:
            _, servers = self._clusters.popitem()
            _stop(servers)

    def __enter__(self) -> Self:
        self._exits.enter_context(interrupted_instead_of_ended())
        self._exits.callback(self.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def _make_room(self) -> None:
        while len(self._clusters) >= MAX_CLUSTERS:
            oldest = next(iter(self._clusters))
            _stop(self._clusters.pop(oldest))


def _start(options: ClusterOptions) -> Servers:
    cluster = LocalCluster(
        options.brokers,
        slaves=options.slaves,
        profile=options.profile,
        time_scale=options.time_scale,
        broker_config=dict(options.broker_config),
    )
    cluster.start()
    if not options.snapshot:
        return Servers(cluster.namesrv_address, cluster.client_options, cluster)
    try:
        cluster.load_snapshot(_START, options.snapshot)
    except BaseException:
        cluster.close()
        raise
    return Servers(cluster.namesrv_address, cluster.client_options, cluster, first=_START)


def _stop(servers: Servers) -> None:
    assert servers.local is not None
    servers.local.close()
