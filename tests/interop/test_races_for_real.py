"""The races of the laboratory, with the official Java client, at a RocketMQ and at a RewindMQ broker.

Each race ends as the catalogue claims for that release. With ``--full`` all cells of the table in
``docs/race/for_real.md`` run, otherwise one or two of each race, at a RocketMQ broker.
"""

from __future__ import annotations

import pytest

from tests.interop.asked import asked_for
from tools.interop.races.cell import Cell, losses_text
from tools.interop.races.cells import ALL, DEFAULT
from tools.interop.races.play import CellResult, play

# All cells together take more than half an hour, which counts as the time of the first test.
pytestmark = pytest.mark.timeout(7_200)


_AT_REWINDMQ = pytest.mark.interop(full_only="the laboratory's tests run every race at RewindMQ")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" in metafunc.fixturenames:
        cells = ALL if metafunc.config.getoption("--full") else DEFAULT
        metafunc.parametrize("cell", [pytest.param(cell, id=str(cell), marks=marks(cell)) for cell in cells])


def marks(cell: Cell) -> list[pytest.MarkDecorator]:
    """Mark a cell: the compatibility page lists the cells of every run, the races' table lists all."""
    if cell not in DEFAULT:
        return [pytest.mark.unlisted]
    return [] if cell.cluster.is_real else [_AT_REWINDMQ]


@pytest.fixture(scope="module")
def results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Cell, CellResult]:
    """The results of all requested cells, which run at the same time because they mostly wait."""
    return {one.cell: one for one in play(asked_for(request, Cell), tmp_path_factory.mktemp("races"))}


def test_the_race_ends_as_the_catalogue_says(results: dict[Cell, CellResult], cell: Cell) -> None:
    one = results[cell]
    if one.error is not None:
        raise one.error
    found = "\n".join(violation.text for violation in one.verdict.violations)
    assert cell.agrees(one.verdict.losses), f"claimed {losses_text(cell.claimed)}, observed:\n{found}"
