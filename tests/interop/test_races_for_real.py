"""The races of the laboratory, with the official Java client, at the real broker and at ours.

What the catalogue says of each comes true with the releases it is said of.
``python -m tools.interop.races`` plays every cell of the table in ``docs/race/for_real.md``; these are one
or two of each race. CI plays those at the real broker: at RewindMQ's the laboratory plays each race all day.
"""

from __future__ import annotations

import pytest

from tests.interop.asked import asked_for
from tools.interop.races.cell import Cell, losses_text
from tools.interop.races.cells import DEFAULT
from tools.interop.races.play import Seen, play

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Cell, Seen]:
    """All that are asked for, played at the same time: they are waits of 10 s and more, most of all."""
    return {one.cell: one for one in play(asked_for(request, Cell), tmp_path_factory.mktemp("races"))}


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, id=str(cell), marks=[pytest.mark.chosen] if cell.cluster.is_real else [])
        for cell in DEFAULT
    ],
)
def test_the_race_ends_as_the_catalogue_says(seen: dict[Cell, Seen], cell: Cell) -> None:
    one = seen[cell]
    if one.error is not None:
        raise one.error
    found = "\n".join(violation.text for violation in one.verdict.violations)
    assert cell.agrees(one.verdict.losses), f"claimed {losses_text(cell.claimed)}, seen:\n{found}"
