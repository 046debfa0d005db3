"""The watcher of a reset judges races right at RocketMQ's broker with the official Java client.

The frames that open a race are held as in ``test_races_for_real.py``, and the laboratory's judge says which
queues were lost. The watcher is ``resetOffsetByTime --watch``: it asks the broker and the consumers only.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.checker import Verdict
from tests.interop.asked import asked_for
from tools.interop.races.cell import Cell, losses_text
from tools.interop.races.cluster import ClusterKind
from tools.interop.races.play import CellResult, play
from tools.interop.races.watched import WatchedStage
from tools.interop.versions import SERVER_4

_AT: Final = ClusterKind(True, SERVER_4, ResetMode.CLASSIC)
LOST: Final = [Cell(race, SERVER_4, _AT) for race in ("R1", "R2", "R6", "R8-KILL")]
KEPT: Final = [Cell(race, SERVER_4, _AT) for race in ("SEED",)]
# Seconds after the reset by which a loss is named (docs/watched_reset.md).
LATEST: Final = 80.0

pytestmark = [pytest.mark.chosen, pytest.mark.unlisted, pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Cell, CellResult]:
    """The results of all requested cells, which run at the same time because they mostly wait."""
    cells, directory = asked_for(request, Cell), tmp_path_factory.mktemp("watched")
    return {one.cell: one for one in play(cells, directory, stage_type=WatchedStage)}


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


@pytest.mark.parametrize("cell", LOST, ids=str)
def test_a_reset_that_is_lost_at_rocketmq_is_called_lost_with_its_race(
    results: dict[Cell, CellResult], cell: Cell
) -> None:
    found = found_of(results[cell])
    assert (found["verdict"], found["code"]) == ("lost", 3)
    states = {(row["brokerName"], row["queueId"]): row for row in found["queues"]}
    lost = {place: row for place, row in states.items() if row["state"] == "lost"}
    assert lost.keys() == lost_queues(results[cell].verdict)
    assert all(row["seconds"] <= LATEST and cell.race in row["races"] for row in lost.values()), lost


@pytest.mark.parametrize("cell", KEPT, ids=str)
def test_a_reset_that_is_kept_at_rocketmq_is_proven(results: dict[Cell, CellResult], cell: Cell) -> None:
    found = found_of(results[cell])
    assert (found["verdict"], found["code"]) == ("proven", 0)
    assert not lost_queues(results[cell].verdict)
