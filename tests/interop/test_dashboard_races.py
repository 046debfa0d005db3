"""Resets from the dashboard's page in Chromium, at RocketMQ's broker with the official Java client.

The frames that open a race are held as in ``test_races_for_real.py``, and the laboratory's judge says which
queues were lost. A person previews the reset, types the group's name, confirms, and looks on.
"""

from __future__ import annotations

from typing import Final

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from tests.interop.asked import asked_for
from tools.dashboard.chromium import NoChromiumError, chromium_path
from tools.interop.races.browser import BrowserStage, ShownProof
from tools.interop.races.cell import Cell, losses_text
from tools.interop.races.cluster import ClusterKind
from tools.interop.races.play import CellResult, play
from tools.interop.versions import SERVER_4

_AT: Final = ClusterKind(True, SERVER_4, ResetMode.CLASSIC)
LOST: Final = [Cell(race, SERVER_4, _AT) for race in ("R1", "R6")]
KEPT: Final = [Cell(race, SERVER_4, _AT) for race in ("SEED",)]

pytestmark = [
    pytest.mark.interop(full_only="it takes two minutes; tests/dashboard shows lost and kept resets"),
    pytest.mark.unlisted,
    pytest.mark.timeout(1_200),
]


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Cell, CellResult]:
    """The results of all requested cells, which run at the same time because they mostly wait."""
    try:
        chromium_path()
    except NoChromiumError as error:
        pytest.skip(str(error))
    cells = asked_for(request, Cell)
    return {one.cell: one for one in play(cells, tmp_path_factory.mktemp("browser"), stage_type=BrowserStage)}


def shown_of(result: CellResult) -> ShownProof:
    """Return what the page showed of a race that ended as the catalogue claims."""
    if result.error is not None:
        raise result.error
    losses = result.verdict.losses
    assert result.cell.agrees(losses), (
        f"claimed {losses_text(result.cell.claimed)}, got {losses_text(losses)}"
    )
    assert result.shown is not None
    print(result.shown)
    return result.shown


@pytest.mark.parametrize("cell", LOST, ids=str)
def test_a_reset_that_is_lost_at_rocketmq_is_shown_as_lost_with_the_name_of_its_race(
    results: dict[Cell, CellResult], cell: Cell
) -> None:
    shown = shown_of(results[cell])
    assert shown.verdict == "lost"
    # The judge sees the frames and the memory of every process; the page asks from outside.
    lost = {(each.broker_name, each.queue_id) for each in results[cell].verdict.violations}
    rows = [row for row in shown.rows if row[1] == "lost"]
    assert {row[0] for row in rows} == {f"{broker}/{queue_id}" for broker, queue_id in lost}
    assert f"the reset is lost in {len(lost)} of {len(shown.rows)} queues" in shown.alert
    assert all(row[3] == "0" and cell.race in row[-1] for row in rows)
    assert f"{cell.race} ({cell.scenario.title})" in shown.evidence
    # The lanes are those of the first row, which is a lost queue.
    assert shown.offences == 1
    assert shown.faults == ()


@pytest.mark.parametrize("cell", KEPT, ids=str)
def test_a_reset_that_is_kept_at_rocketmq_is_shown_as_proven(
    results: dict[Cell, CellResult], cell: Cell
) -> None:
    shown = shown_of(results[cell])
    assert (shown.verdict, shown.alert, shown.evidence, shown.offences) == ("proven", "", "", 0)
    assert all(row[1] == "proven" for row in shown.rows)
    assert not results[cell].verdict.violations
    assert shown.faults == ()
