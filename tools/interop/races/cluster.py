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
from tools.interop.servers import COMMON_CONFIG, RealServer

OURS: Final = "rewindmq"
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
        return f"{self.release if self.is_real else OURS + '-' + self.release}-{self.mode}"


class RaceCluster:
    """One broker ``broker-a`` and its name server; started by ``async with``."""

    def __init__(self, kind: ClusterKind, directory: Path) -> None:
        self.kind = kind
        self.hearers: list[BrokerHearer] = []
        self._directory = directory
        self._ours: LocalCluster | None = None
        self._real: RealServer | None = None
        self._pipe: PointPipe | None = None

    @property
    def namesrv_address(self) -> str:
        return self._running.namesrv_address

    @property
    def broker_address(self) -> str:
        return self._ours.brokers[BROKER].address if self._ours else self._theirs.broker_address

    @property
    def offsets_file(self) -> Path:
        """The file to which a RocketMQ broker writes its table of offsets."""
        return self._theirs.store_path / "config" / "consumerOffset.json"

    async def __aenter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        if self.kind.is_real:
            keys: dict[str, object] = {}
            if number(self.kind.release) >= _SERVER_SIDE:
                is_server_side = self.kind.mode is ResetMode.SERVER
                keys["useServerSideResetOffset"] = str(is_server_side).lower()
            self._real = await asyncio.to_thread(RealServer, self.kind.release, self._directory, keys)
        else:
            self._pipe = PointPipe(self._directory / f"{BROKER}.jsonl", self._hear)
            config = {key: value for key, value in COMMON_CONFIG.items() if key not in _NOT_FOR_ALL}
            self._ours = LocalCluster(
                1,
                directory=self._directory,
                profile=Profile(self.kind.release),
                broker_config={**config, "resetMode": self.kind.mode},
                events_directory=self._directory,
            )
            await asyncio.to_thread(self._ours.start)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._ours is not None or self._real is not None:
            await asyncio.to_thread(self._running.close)

    async def kill_broker(self) -> None:
        if self._ours is not None:
            await asyncio.to_thread(self._ours.kill, BROKER)
        else:
            await asyncio.to_thread(self._theirs.kill_broker)

    async def start_broker(self) -> None:
        if self._ours is not None:
            await asyncio.to_thread(self._ours.restart, BROKER)
        else:
            await asyncio.to_thread(self._theirs.start_broker)

    @property
    def _theirs(self) -> RealServer:
        assert self._real is not None
        return self._real

    @property
    def _running(self) -> LocalCluster | RealServer:
        running = self._ours or self._real
        assert running is not None
        return running

    def _hear(self, value: dict[str, Any]) -> None:
        for hearer in self.hearers:
            hearer(BROKER, value)

    async def watch_offsets(self, told: Callable[[str], None], period: float = 0.3) -> None:
        """Call ``told`` with every new content of a RocketMQ broker's offset file, until cancelled."""
        before = ""
        while True:
            with contextlib.suppress(OSError):
                text = self.offsets_file.read_text()
                if text != before:
                    before = text
                    told(text)
            await asyncio.sleep(period)
