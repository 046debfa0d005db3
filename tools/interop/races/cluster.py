"""A RocketMQ or RewindMQ cluster on which several races run; a RewindMQ broker reports its points."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from rewindmq import LocalCluster
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.stage.point_pipe import PointPipe
from rewindmq.race.stage.stage import BROKER
from tools.interop.races.race_driver import number
from tools.interop.servers import COMMON_CONFIG, RocketMQServer

REWINDMQ: Final = "rewindmq"
# The first release whose broker can reset by itself; the option was off at first.
_SERVER_SIDE: Final = (5, 1)
_NOT_FOR_ALL: Final = ("brokerName", "brokerId", "brokerIP1", "brokerClusterName")

# Called as hear(process, point that a RewindMQ broker recorded).
BrokerHearer = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class ClusterKind:
    """The kind of a cluster.

    Attributes:
        release: RocketMQ's release, such as ``4.9.7``, or RewindMQ's profile, such as ``v49``.
    """

    is_real: bool
    release: str
    mode: ResetMode

    def __str__(self) -> str:
        return f"{self.release if self.is_real else REWINDMQ + '-' + self.release}-{self.mode}"


class RaceCluster:
    """One broker ``broker-a`` and its name server; started by ``async with``."""

    def __init__(self, kind: ClusterKind, directory: Path) -> None:
        self.kind = kind
        self.hearers: list[BrokerHearer] = []
        self._directory = directory
        self._rewindmq: LocalCluster | None = None
        self._rocketmq: RocketMQServer | None = None
        self._pipe: PointPipe | None = None

    @property
    def namesrv_address(self) -> str:
        return self._running.namesrv_address

    @property
    def broker_address(self) -> str:
        return (
            self._rewindmq.brokers[BROKER].address
            if self._rewindmq
            else self._started_rocketmq.broker_address
        )

    @property
    def offsets_file(self) -> Path:
        """The file to which a RocketMQ broker writes its table of offsets."""
        return self._started_rocketmq.store_path / "config" / "consumerOffset.json"

    async def __aenter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        if self.kind.is_real:
            keys: dict[str, object] = {}
            if number(self.kind.release) >= _SERVER_SIDE:
                is_server_side = self.kind.mode is ResetMode.SERVER
                keys["useServerSideResetOffset"] = str(is_server_side).lower()
            self._rocketmq = await asyncio.to_thread(RocketMQServer, self.kind.release, self._directory, keys)
        else:
            self._pipe = PointPipe(self._directory / f"{BROKER}.jsonl", self._hear)
            config = {key: value for key, value in COMMON_CONFIG.items() if key not in _NOT_FOR_ALL}
            self._rewindmq = LocalCluster(
                1,
                directory=self._directory,
                profile=Profile(self.kind.release),
                broker_config={**config, "resetMode": self.kind.mode},
                events_directory=self._directory,
            )
            await asyncio.to_thread(self._rewindmq.start)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._rewindmq is not None or self._rocketmq is not None:
            await asyncio.to_thread(self._running.close)

    async def kill_broker(self) -> None:
        if self._rewindmq is not None:
            await asyncio.to_thread(self._rewindmq.kill, BROKER)
        else:
            await asyncio.to_thread(self._started_rocketmq.kill_broker)

    async def start_broker(self) -> None:
        if self._rewindmq is not None:
            await asyncio.to_thread(self._rewindmq.restart, BROKER)
        else:
            await asyncio.to_thread(self._started_rocketmq.start_broker)

    @property
    def _started_rocketmq(self) -> RocketMQServer:
        assert self._rocketmq is not None
        return self._rocketmq

    @property
    def _running(self) -> LocalCluster | RocketMQServer:
        running = self._rewindmq or self._rocketmq
        assert running is not None
        return running

    def _hear(self, value: dict[str, Any]) -> None:
        for hearer in self.hearers:
            hearer(BROKER, value)

    async def watch_offsets(self, report: Callable[[str], None], period: float = 0.3) -> None:
        """Call ``report`` with every new content of a RocketMQ broker's offset file, until cancelled."""
        before = ""
        while True:
            with contextlib.suppress(OSError):
                text = self.offsets_file.read_text()
                if text != before:
                    before = text
                    report(text)
            await asyncio.sleep(period)
