"""Clusters with a RocketMQ master and a RewindMQ master, under a name server of either kind.

With a RewindMQ name server, each master also has a slave of the other kind.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.interop.rewindmq_servers import RewindMQBroker, RewindMQNamesrv
from tools.interop.servers import ORDERED_COMMITS, RocketMQBroker, RocketMQNamesrv
from tools.interop.store_chain import OF_RELEASE, PROFILES
from tools.interop.versions import SERVER_4, SERVER_5

REWINDMQ_NAMESRV, ROCKETMQ_NAMESRV = "a RewindMQ name server", "a RocketMQ name server"
ROCKETMQ_BROKER: Final = "broker-a"
REWINDMQ_BROKER: Final = "broker-b"
CLUSTER: Final = "DefaultCluster"
_CONFIG: Final[dict[str, object]] = {"mappedFileSizeCommitLog": 1 << 20, "slaveReadEnable": "true"}
_SLAVE: Final[dict[str, object]] = {"brokerId": 1, "brokerRole": "SLAVE"}


def is_chosen(release: str, kind: str) -> bool:
    """Whether CI runs this cluster: each kind of name server once, each with another release."""
    return (release, kind) in ((SERVER_4, ROCKETMQ_NAMESRV), (SERVER_5, REWINDMQ_NAMESRV))


@dataclass
class MixedCluster:
    """``broker-a`` is RocketMQ's, ``broker-b`` is RewindMQ's; their slaves are of the other kind.

    Attributes:
        release: RocketMQ's release; RewindMQ uses the profile that imitates it.
    """

    release: str
    kind: str
    directory: Path
    namesrv: RocketMQNamesrv | RewindMQNamesrv
    rocketmq: RocketMQBroker
    rewindmq: RewindMQBroker
    rewindmq_slave: RewindMQBroker | None = None
    rocketmq_slave: RocketMQBroker | None = None
    more: list[RewindMQBroker] = field(default_factory=list)

    @property
    def namesrv_address(self) -> str:
        return self.namesrv.address

    def start_rewindmq(self, name: str) -> RewindMQBroker:
        """Start another RewindMQ broker in this cluster."""
        profile = PROFILES[self.release]
        keys = _CONFIG | {"brokerName": name}
        broker = RewindMQBroker(profile, self.namesrv_address, self.directory / name, config=keys)
        self.more.append(broker)
        return broker

    def close(self) -> None:
        """Kill all brokers, because no test reads their stores, and stop the name server."""
        brokers = [
            broker
            for broker in (self.rewindmq_slave, self.rocketmq_slave, self.rewindmq, self.rocketmq)
            if broker
        ]
        try:
            with ThreadPoolExecutor() as threads:
                list(threads.map(lambda broker: broker.kill(), (*self.more, *brokers)))
        finally:
            self.namesrv.stop()


class MixedClusters:
    """All mixed clusters; each starts when it is first requested, and a failed start is not repeated."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clusters: dict[tuple[str, str], MixedCluster | Exception] = {}

    def get(self, release: str, kind: str) -> MixedCluster:
        key = (release, kind)
        if key not in self._clusters:
            try:
                self._clusters[key] = _start(release, kind, self._directory / f"{release}-{kind.split()[1]}")
            except Exception as error:
                self._clusters[key] = error
        cluster = self._clusters[key]
        if isinstance(cluster, Exception):
            raise cluster
        return cluster

    def close(self) -> None:
        """Close all at the same time: a RocketMQ process takes some 10 s."""
        running = [cluster for cluster in self._clusters.values() if isinstance(cluster, MixedCluster)]
        with ThreadPoolExecutor(max(1, len(running))) as closers:
            closing = [closers.submit(cluster.close) for cluster in running]
        for one in closing:
            one.result()


def _start(release: str, kind: str, directory: Path) -> MixedCluster:
    """Start the masters at the same time, then their slaves."""
    profile = PROFILES[release]
    folders = {
        name: directory / name
        for name in ("namesrv", ROCKETMQ_BROKER, REWINDMQ_BROKER, "rewindmq-slave", "rocketmq-slave")
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    started = ExitStack()
    namesrv: RewindMQNamesrv | RocketMQNamesrv
    if kind == REWINDMQ_NAMESRV:
        namesrv = RewindMQNamesrv(profile, folders["namesrv"])
    else:
        namesrv = RocketMQNamesrv(release, folders["namesrv"])
    started.callback(namesrv.stop)

    def rocketmq(folder: str, **keys: object) -> RocketMQBroker:
        config = {**_CONFIG, **ORDERED_COMMITS, **OF_RELEASE[release], **keys}
        broker = RocketMQBroker(release, namesrv.address, folders[folder], config=config)
        started.callback(broker.stop)
        return broker

    def rewindmq(folder: str, **keys: object) -> RewindMQBroker:
        broker = RewindMQBroker(profile, namesrv.address, folders[folder], config=_CONFIG | keys)
        started.callback(broker.stop)
        return broker

    try:
        with ThreadPoolExecutor() as threads:
            rocketmq_master = threads.submit(rocketmq, ROCKETMQ_BROKER, brokerName=ROCKETMQ_BROKER)
            rewindmq_master = threads.submit(rewindmq, REWINDMQ_BROKER, brokerName=REWINDMQ_BROKER)
            cluster = MixedCluster(
                release, kind, directory, namesrv, rocketmq_master.result(), rewindmq_master.result()
            )
        if kind == REWINDMQ_NAMESRV:
            with ThreadPoolExecutor() as threads:
                rocketmq_slave = threads.submit(
                    rocketmq, "rocketmq-slave", brokerName=REWINDMQ_BROKER, **_SLAVE
                )
                rewindmq_slave = threads.submit(
                    rewindmq, "rewindmq-slave", brokerName=ROCKETMQ_BROKER, **_SLAVE
                )
                cluster.rocketmq_slave, cluster.rewindmq_slave = (
                    rocketmq_slave.result(),
                    rewindmq_slave.result(),
                )
    except BaseException:
        started.close()
        raise
    return cluster
