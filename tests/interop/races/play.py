"""Plays many cells at the same time, and says of each what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from interop.races.cell import KILLS_BROKER, KILLS_MEMBERS, Cell
from interop.races.cluster import ClusterKind, RaceCluster
from interop.races.race_driver import RaceDriver, race_driver_jars
from interop.races.stage import JavaStage
from interop.toolchains import server_jars

from rewindmq.race.checker import Verdict, judge
from rewindmq.race.checker.verdict import NOTHING_TO_JUDGE
from rewindmq.race.history import History
from rewindmq.race.stage.settle import settle

_AT_A_TIME: Final = 28
_APART_SECONDS: Final = 0.5
_STARTS_AT_A_TIME: Final = 3


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
        turns = _Turns()
        return await asyncio.gather(*(_play_in_turn(cell, company, turns) for cell in cells))


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
        shared = sorted({cell.cluster for cell in cells if cell.race not in KILLS_BROKER}, key=str)
        own = [cell for cell in cells if cell.race in KILLS_BROKER]
        starting = asyncio.Semaphore(_STARTS_AT_A_TIME)

        async def start(kind: ClusterKind, name: str) -> RaceCluster:
            async with starting:
                return await self._exits.enter_async_context(RaceCluster(kind, self._directory / name))

        kinds = [*shared, *(cell.cluster for cell in own)]
        # All of them come to an end, also where one fails: nothing is to be left half started.
        done = await asyncio.gather(
            *(start(kind, str(number)) for number, kind in enumerate(kinds)), return_exceptions=True
        )
        for one in done:
            if isinstance(one, BaseException):
                raise one
        started = [one for one in done if isinstance(one, RaceCluster)]
        self._shared.update(zip(shared, started, strict=False))
        self._own.update(zip(own, started[len(shared) :], strict=True))
        for version in sorted({cell.client for cell in cells}):
            self._drivers[version] = await self._launch(version)

    def cluster(self, cell: Cell) -> RaceCluster:
        return self._own[cell] if cell in self._own else self._shared[cell.cluster]

    async def driver(self, version: str, *, is_own: bool) -> RaceDriver:
        return await self._launch(version) if is_own else self._drivers[version]

    async def _launch(self, version: str) -> RaceDriver:
        self._count += 1
        driver = await RaceDriver.launch(version, self._directory, f"driver-{self._count}")
        self._exits.push_async_callback(driver.stop)
        return driver


class _Turns:
    """Two cores are busy while consumers start, and idle while they wait: one begins after the other."""

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(_AT_A_TIME)
        self.begin = asyncio.Lock()


async def _play_in_turn(cell: Cell, company: _Company, turns: _Turns) -> Seen:
    async with turns.places:
        async with turns.begin:
            await asyncio.sleep(_APART_SECONDS)
        return await _play_one(cell, company)


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
        seen.history = stage.judged()
        seen.verdict = judge(seen.history)
    except Exception as error:
        seen.error = error
    seen.raw = stage.history
    seen.seconds = time.monotonic() - began
    return seen
