"""The watcher of a reset judges races right at RocketMQ's broker with the official Java client.

The frames that open a race are held as in ``test_races_for_real.py``, and the laboratory's judge says which
queues were lost. The watcher is ``resetOffsetByTime --watch``: it asks the broker and the consumers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.checker import Verdict
from tests.interop.asked import asked_for
from tools.interop.races.cell import Cell, losses_text
from tools.interop.races.cluster import ClusterKind
from tools.interop.races.play import CellResult, play
from tools.interop.races.watched import IdleWatchedStage, WatchedStage
from tools.interop.versions import SERVER_4

_AT: Final = ClusterKind(True, SERVER_4, ResetMode.CLASSIC)
LOST: Final = [Cell(race, SERVER_4, _AT) for race in ("R1", "R2", "R6", "R8-KILL")]
KEPT: Final = [Cell(race, SERVER_4, _AT) for race in ("SEED",)]
# Seconds after the reset by which a loss is named (docs/watched_reset.md).
LATEST: Final = 80.0

pytestmark = [
    pytest.mark.interop(full_only="it takes a minute; the laboratory's tests watch every race"),
    pytest.mark.unlisted,
    pytest.mark.timeout(1_200),
]


@dataclass(frozen=True)
class Idle:
    """A cell whose group consumed nothing for a while before the reset."""

    cell: Cell

    def __str__(self) -> str:
        return f"idle-{self.cell}"


IDLE_LOST: Final = [Idle(cell) for cell in LOST if cell.race in ("R6", "R8-KILL")]
IDLE_KEPT: Final = [Idle(Cell("PERSIST", SERVER_4, _AT))]


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Cell, CellResult]:
    """The results of all requested cells, which run at the same time because they mostly wait."""
    cells, directory = asked_for(request, Cell), tmp_path_factory.mktemp("watched")
    return {one.cell: one for one in play(cells, directory, stage_type=WatchedStage)}


@pytest.fixture(scope="module")
def idle_results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Cell, CellResult]:
    """The same of groups that were idle."""
    cells, directory = [idle.cell for idle in asked_for(request, Idle)], tmp_path_factory.mktemp("idle")
    return {one.cell: one for one in play(cells, directory, stage_type=IdleWatchedStage)}


def found_of(result: CellResult) -> dict[str, Any]:
    """Return the watcher's last words on a race that ended as the catalogue claims."""
    if result.error is not None:
        raise result.error
    losses = result.verdict.losses
    assert result.cell.agrees(losses), (
        f"claimed {losses_text(result.cell.claimed)}, got {losses_text(losses)}"
    )
    assert result.watched is not None
    print("\n".join(result.watched.lines))
    return {**result.watched.summary, "code": result.watched.code}


def lost_queues(verdict: Verdict) -> set[tuple[str, int]]:
    return {(violation.broker_name, violation.queue_id) for violation in verdict.violations}


def check_lost(result: CellResult) -> None:
    """The watcher calls the queues lost that the judge calls lost, and only these, and names the race."""
    found = found_of(result)
    assert (found["verdict"], found["code"]) == ("lost", 3)
    states = {(row["brokerName"], row["queueId"]): row for row in found["queues"]}
    lost = {place: row for place, row in states.items() if row["state"] == "lost"}
    assert lost.keys() == lost_queues(result.verdict)
    assert all(row["seconds"] <= LATEST and result.cell.race in row["races"] for row in lost.values()), lost


def check_kept(result: CellResult) -> None:
    found = found_of(result)
    assert (found["verdict"], found["code"]) == ("proven", 0)
    assert not lost_queues(result.verdict)


@pytest.mark.parametrize("cell", LOST, ids=str)
def test_a_reset_that_is_lost_at_rocketmq_is_called_lost_with_its_race(
    results: dict[Cell, CellResult], cell: Cell
) -> None:
    check_lost(results[cell])


@pytest.mark.parametrize("cell", KEPT, ids=str)
def test_a_reset_that_is_kept_at_rocketmq_is_proven(results: dict[Cell, CellResult], cell: Cell) -> None:
    check_kept(results[cell])


@pytest.mark.parametrize("idle", IDLE_LOST, ids=str)
def test_a_lost_reset_of_an_idle_group_is_not_counted_as_redelivered(
    idle_results: dict[Cell, CellResult], idle: Idle
) -> None:
    check_lost(idle_results[idle.cell])


@pytest.mark.parametrize("idle", IDLE_KEPT, ids=str)
def test_the_fast_redelivery_of_an_idle_group_is_counted_at_rocketmq(
    idle_results: dict[Cell, CellResult], idle: Idle
) -> None:
    check_kept(idle_results[idle.cell])
