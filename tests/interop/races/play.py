"""Plays many cells at the same time, and says of each what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from interop.races.cell import KILLS_BROKER, KILLS_MEMBERS, Cell
from interop.races.cluster import ClusterKind, RaceCluster
from interop.races.race_driver import RaceDriver, race_driver_jars
from interop.races.stage import JavaStage
from interop.toolchains import server_jars

from rewindmq.race.checker import Verdict, judge
from rewindmq.race.checker.verdict import NOTHING_TO_JUDGE
from rewindmq.race.history import History
from rewindmq.race.stage.settle import settle


@dataclass
class Seen:
    """What came of one cell.

    Attributes:
        error: why it could not be played to its end.
    """

    cell: Cell
    verdict: Verdict = NOTHING_TO_JUDGE
    history: History = field(default_factory=History)
    raw: History = field(default_factory=History)
    error: BaseException | None = None
    seconds: float = 0.0


def play(cells: Sequence[Cell], directory: Path) -> list[Seen]:
    """Build what is needed, play all of them at the same time, leave nothing behind."""
    for cell in cells:
        race_driver_jars(cell.client)
        if cell.cluster.is_real:
            server_jars(cell.cluster.release)
    return asyncio.run(_play_all(cells, directory))


async def _play_all(cells: Sequence[Cell], directory: Path) -> list[Seen]:
    async with AsyncExitStack() as exits:
        company = _Company(directory, exits)
        await company.prepare(cells)
        return await asyncio.gather(*(_play_one(cell, company) for cell in cells))


class _Company:
    """The servers and JVMs that races share, or have to themselves."""

    def __init__(self, directory: Path, exits: AsyncExitStack) -> None:
        self._directory = directory
        self._exits = exits
        self._shared: dict[ClusterKind, RaceCluster] = {}
        self._own: dict[Cell, RaceCluster] = {}
        self._drivers: dict[str, RaceDriver] = {}
        self._count = 0

    async def prepare(self, cells: Sequence[Cell]) -> None:
        """Start what they share."""
        kinds = {cell.cluster for cell in cells if cell.race not in KILLS_BROKER}
        for number, kind in enumerate(sorted(kinds, key=str)):
            self._shared[kind] = await self._cluster(kind, f"{number}")
        for number, cell in enumerate(cell for cell in cells if cell.race in KILLS_BROKER):
            self._own[cell] = await self._cluster(cell.cluster, f"own{number}")
        for version in sorted({cell.client for cell in cells}):
            self._drivers[version] = await self._launch(version)

    def cluster(self, cell: Cell) -> RaceCluster:
        return self._own[cell] if cell in self._own else self._shared[cell.cluster]

    async def driver(self, version: str, *, is_own: bool) -> RaceDriver:
        return await self._launch(version) if is_own else self._drivers[version]

    async def _cluster(self, kind: ClusterKind, name: str) -> RaceCluster:
        return await self._exits.enter_async_context(RaceCluster(kind, self._directory / name))

    async def _launch(self, version: str) -> RaceDriver:
        self._count += 1
        driver = await RaceDriver.launch(version, self._directory, f"driver-{self._count}")
        self._exits.push_async_callback(driver.stop)
        return driver


async def _play_one(cell: Cell, company: _Company) -> Seen:
    seen, began = Seen(cell), time.monotonic()
    stage = JavaStage(
        str(cell),
        cell.profile,
        cell.cluster.mode,
        company.cluster(cell),
        lambda is_own: company.driver(cell.client, is_own=is_own),
        has_own_jvms=cell.race in KILLS_MEMBERS,
    )
    try:
        async with stage.opened():
            await cell.scenario.play(stage)
            await settle(stage)
    except Exception as error:
        seen.error = error
    seen.raw = stage.history
    seen.seconds = time.monotonic() - began
    if seen.error is None:
        seen.history = stage.judged()
        seen.verdict = judge(seen.history)
    return seen
