"""Runs many cells at the same time, and returns the result of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rewindmq.race.checker import Verdict, judge
from rewindmq.race.checker.verdict import NOTHING_TO_JUDGE
from rewindmq.race.history import History
from tools.interop.races.cell import KILLS_BROKER, KILLS_CONSUMERS, Cell
from tools.interop.races.cluster import ClusterKind, RaceCluster
from tools.interop.races.race_driver import RaceDriver, race_driver_jars
from tools.interop.races.stage import JavaStage
from tools.interop.races.watching_operator import WatchedReset
from tools.interop.toolchains import server_jars
from tools.interop.turns import take_turn

if TYPE_CHECKING:
    from tools.interop.races.browser import ShownProof

_AT_A_TIME: Final = 36
_APART_SECONDS: Final = 0.5
_STARTS_AT_A_TIME: Final = 2


@dataclass
class CellResult:
    """The result of one cell.

    Attributes:
        error: why it did not run to its end.
        watched: what the watcher of the reset found; None if the stage has no watcher.
        shown: what the dashboard's page showed of it; None if the stage has no browser.
    """

    cell: Cell
    verdict: Verdict = NOTHING_TO_JUDGE
    history: History = field(default_factory=History)
    raw: History = field(default_factory=History)
    error: BaseException | None = None
    seconds: float = 0.0
    watched: WatchedReset | None = None
    shown: ShownProof | None = None


def play(
    cells: Sequence[Cell],
    directory: Path,
    report: Callable[[CellResult], None] = lambda result: None,
    *,
    stage_type: type[JavaStage] = JavaStage,
) -> list[CellResult]:
    """Build what the cells need, run as many cells at a time as the machine can, and remove everything.

    Args:
        report: called with each result as soon as its cell has ended.
        stage_type: of every cell, such as ``WatchedStage``.
    """
    for cell in cells:
        race_driver_jars(cell.client)
        if cell.cluster.is_real:
            server_jars(cell.cluster.release)
    if any(cell.cluster.is_real for cell in cells):
        # Otherwise the first of several threads that start a JVM would take the turn.
        take_turn()
    return asyncio.run(_play_all(cells, directory, report, stage_type))


async def _play_all(
    cells: Sequence[Cell],
    directory: Path,
    report: Callable[[CellResult], None],
    stage_type: type[JavaStage],
) -> list[CellResult]:
    async with AsyncExitStack() as exits:
        shared = _SharedServers(directory, exits)
        starts = _Starts()

        async def one(cell: Cell) -> CellResult:
            result = await _play_in_turn(cell, shared, starts, stage_type)
            report(result)
            return result

        return await asyncio.gather(*(one(cell) for cell in cells))


class _SharedServers:
    """The clusters and JVMs of the races, shared or not; each is started when a race first needs it.

    One that does not start fails only the races that need it.
    """

    def __init__(self, directory: Path, exits: AsyncExitStack) -> None:
        self._directory = directory
        self._exits = exits
        self._clusters: dict[ClusterKind | Cell, asyncio.Task[RaceCluster]] = {}
        self._drivers: dict[str, asyncio.Task[RaceDriver]] = {}
        self._starting = asyncio.Semaphore(_STARTS_AT_A_TIME)
        self._count = 0

    async def cluster(self, cell: Cell) -> RaceCluster:
        """Return the cluster of a race; a race that kills the broker has a cluster of its own."""
        key = cell if cell.race in KILLS_BROKER else cell.cluster
        if key not in self._clusters:
            self._clusters[key] = asyncio.create_task(self._open(cell.cluster))
        return await asyncio.shield(self._clusters[key])

    async def driver(self, version: str, *, is_own: bool) -> RaceDriver:
        if is_own:
            return await self._launch(version)
        if version not in self._drivers:
            self._drivers[version] = asyncio.create_task(self._launch(version))
        return await asyncio.shield(self._drivers[version])

    async def _open(self, kind: ClusterKind) -> RaceCluster:
        async with self._starting:
            cluster = RaceCluster(kind, self._fresh_directory("cluster"))
            return await self._exits.enter_async_context(cluster)

    async def _launch(self, version: str) -> RaceDriver:
        async with self._starting:
            directory = self._fresh_directory("driver")
            driver = await RaceDriver.launch(version, directory.parent, directory.name)
        self._exits.push_async_callback(driver.stop)
        return driver

    def _fresh_directory(self, name: str) -> Path:
        self._count += 1
        return self._directory / f"{name}-{self._count}"


class _Starts:
    """Lets races start one after another: consumers use both cores while they start, and idle afterwards."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(_AT_A_TIME)
        self.begin = asyncio.Lock()


async def _play_in_turn(
    cell: Cell, shared: _SharedServers, starts: _Starts, stage_type: type[JavaStage]
) -> CellResult:
    async with starts.places:
        async with starts.begin:
            await asyncio.sleep(_APART_SECONDS)
        return await _play_one(cell, shared, stage_type)


async def _play_one(cell: Cell, shared: _SharedServers, stage_type: type[JavaStage]) -> CellResult:
    result, began = CellResult(cell), time.monotonic()
    try:
        stage = stage_type(
            str(cell),
            cell.profile,
            cell.cluster.mode,
            await shared.cluster(cell),
            lambda is_own: shared.driver(cell.client, is_own=is_own),
            has_own_jvms=cell.race in KILLS_CONSUMERS,
        )
        result.raw = stage.history
        # The first race starts what other races share, which takes most of its time.
        await shared.driver(cell.client, is_own=False)
        async with stage.opened():
            await cell.scenario.play(stage)
            await stage.at_rest()
        result.history = stage.judged()
        result.verdict = judge(result.history)
        result.watched, result.shown = stage.watched, stage.shown
    except Exception as error:
        result.error = error
    result.seconds = time.monotonic() - began
    return result
