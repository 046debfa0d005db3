"""Clusters with a RocketMQ master and a RewindMQ master, under a name server of either kind.

With a RewindMQ name server, each master also has a slave of the other kind.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.interop.servers import ORDERED_COMMITS, RealBroker, RealNamesrv
from tools.interop.store_chain import OF_RELEASE, PROFILES
from tools.interop.store_members import OurBroker, OurNamesrv
from tools.interop.versions import SERVER_4, SERVER_5

OURS, THEIRS = "our name server", "a real name server"
REAL_NAME: Final = "broker-a"
OUR_NAME: Final = "broker-b"
CLUSTER: Final = "DefaultCluster"
_CONFIG: Final[dict[str, object]] = {"mappedFileSizeCommitLog": 1 << 20, "slaveReadEnable": "true"}
_SLAVE: Final[dict[str, object]] = {"brokerId": 1, "brokerRole": "SLAVE"}


def is_chosen(release: str, kind: str) -> bool:
    """Whether CI runs this cluster: each kind of name server once, each with another release."""
    return (release, kind) in ((SERVER_4, THEIRS), (SERVER_5, OURS))


@dataclass
class MixedCluster:
    """``broker-a`` is RocketMQ's, ``broker-b`` is RewindMQ's; their slaves are of the other kind.

    Attributes:
        release: RocketMQ's release; RewindMQ uses the profile that imitates it.
    """

    release: str
    kind: str
    directory: Path
    namesrv: RealNamesrv | OurNamesrv
    real: RealBroker
    ours: OurBroker
    our_slave: OurBroker | None = None
    real_slave: RealBroker | None = None
    more: list[OurBroker] = field(default_factory=list)

    @property
    def namesrv_address(self) -> str:
        return self.namesrv.address

    def start_ours(self, name: str) -> OurBroker:
        """Start another RewindMQ broker in this cluster."""
        profile = PROFILES[self.release]
        keys = _CONFIG | {"brokerName": name}
        broker = OurBroker(profile, self.namesrv_address, self.directory / name, config=keys)
        self.more.append(broker)
        return broker

    def close(self) -> None:
        """Kill all brokers, because no test reads their stores, and stop the name server."""
        brokers = [broker for broker in (self.our_slave, self.real_slave, self.ours, self.real) if broker]
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
                self._clusters[key] = _start(release, kind, self._directory / f"{release}-{kind.split()[0]}")
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
    folders = {name: directory / name for name in ("namesrv", REAL_NAME, OUR_NAME, "our-slave", "real-slave")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    started = ExitStack()
    namesrv: OurNamesrv | RealNamesrv
    if kind == OURS:
        namesrv = OurNamesrv(profile, folders["namesrv"])
    else:
        namesrv = RealNamesrv(release, folders["namesrv"])
    started.callback(namesrv.stop)

    def real(folder: str, **keys: object) -> RealBroker:
        config = {**_CONFIG, **ORDERED_COMMITS, **OF_RELEASE[release], **keys}
        broker = RealBroker(release, namesrv.address, folders[folder], config=config)
        started.callback(broker.stop)
        return broker

    def ours(folder: str, **keys: object) -> OurBroker:
        broker = OurBroker(profile, namesrv.address, folders[folder], config=_CONFIG | keys)
        started.callback(broker.stop)
        return broker

    try:
        with ThreadPoolExecutor() as threads:
            a_real = threads.submit(real, REAL_NAME, brokerName=REAL_NAME)
            an_ours = threads.submit(ours, OUR_NAME, brokerName=OUR_NAME)
            cluster = MixedCluster(release, kind, directory, namesrv, a_real.result(), an_ours.result())
        if kind == OURS:
            with ThreadPoolExecutor() as threads:
                their_slave = threads.submit(real, "real-slave", brokerName=OUR_NAME, **_SLAVE)
                our_slave = threads.submit(ours, "our-slave", brokerName=REAL_NAME, **_SLAVE)
                cluster.real_slave, cluster.our_slave = their_slave.result(), our_slave.result()
    except BaseException:
        started.close()
        raise
    return cluster
