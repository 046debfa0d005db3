"""The races of the laboratory, with the official Java client, at a RocketMQ and at a RewindMQ broker.

What the catalogue says of each comes true with the releases it is said of. With ``--full`` these are all
cells of the table in ``docs/race/for_real.md``; without, one or two of each race. CI plays those at the real
broker: at RewindMQ's the laboratory plays each race all day.
"""

from __future__ import annotations

import pytest

from tests.interop.asked import asked_for
from tools.interop.races.cell import Cell, losses_text
from tools.interop.races.cells import ALL, DEFAULT
from tools.interop.races.play import Seen, play

# All cells take more than half an hour together, which counts as the first test's.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(7_200)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" in metafunc.fixturenames:
        cells = ALL if metafunc.config.getoption("--full") else DEFAULT
        metafunc.parametrize("cell", [pytest.param(cell, id=str(cell), marks=marks(cell)) for cell in cells])


def marks(cell: Cell) -> list[pytest.MarkDecorator]:
    """The page of the results shows those that every run of the group plays; the table shows all."""
    if cell not in DEFAULT:
        return [pytest.mark.unlisted]
    return [pytest.mark.chosen] if cell.cluster.is_real else []


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Cell, Seen]:
    """All that are asked for, played at the same time: they are waits of 10 s and more, most of all."""
    return {one.cell: one for one in play(asked_for(request, Cell), tmp_path_factory.mktemp("races"))}


def test_the_race_ends_as_the_catalogue_says(seen: dict[Cell, Seen], cell: Cell) -> None:
    one = seen[cell]
    if one.error is not None:
        raise one.error
    found = "\n".join(violation.text for violation in one.verdict.violations)
    assert cell.agrees(one.verdict.losses), f"claimed {losses_text(cell.claimed)}, seen:\n{found}"
