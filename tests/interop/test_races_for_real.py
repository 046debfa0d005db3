"""The races of the laboratory, with the official Java client, at the real broker and at ours.

What the catalogue says of each comes true with the releases it is said of.
``python -m tools.interop.races`` plays every cell of the table in ``docs/race/for_real.md``; these are one
or two of each race.
"""

from __future__ import annotations

import pytest

from tools.interop.races.cell import Cell, losses_text
from tools.interop.races.cells import DEFAULT
from tools.interop.races.play import Seen, play

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[Cell, Seen]:
    """All of them, played at the same time: they are waits of 10 s and more, most of all."""
    return {one.cell: one for one in play(DEFAULT, tmp_path_factory.mktemp("races"))}


@pytest.mark.parametrize("cell", DEFAULT, ids=str)
def test_the_race_ends_as_the_catalogue_says(seen: dict[Cell, Seen], cell: Cell) -> None:
    one = seen[cell]
    if one.error is not None:
        raise one.error
    found = "\n".join(violation.text for violation in one.verdict.violations)
    assert cell.agrees(one.verdict.losses), f"claimed {losses_text(cell.claimed)}, seen:\n{found}"
