"""``show`` prints the same with both engines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq.__main__ import main
from tests.pipeline.logs import random_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = (3, 8)
QUESTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("--json", "--limit", "0"),
    ("--json", "--limit", "7"),
    ("--count",),
    ("--topic", "Orders", "--key", "two", "--json"),
    ("--key", "nothing"),
    ("--from", "2023-11-14T22:14:00Z", "--to", "2023-11-14T22:15:00Z", "--json", "--limit", "0"),
    *(
        ("--view", view, *more, "--limit", "0")
        for view in ("consumequeue", "index", "offsets", "damage")
        for more in ((), ("--json",), ("--count",))
    ),
    ("--view", "consumequeue", "--topic", "Prices", "--limit", "0"),
    ("--view", "offsets", "--topic", "Orders", "--count"),
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A whole store, one with a torn tail and a wrong CRC, and one whose log has a hole."""
    root = tmp_path_factory.mktemp("engines")
    whole, torn, holed = root / "whole", root / "torn", root / "holed"
    random_store(whole, seed=SEEDS[1])
    random_store(torn, seed=SEEDS[0])
    shutil.copytree(torn, holed)
    _spoil(torn, 300, 1)
    _spoil(holed, 2_000, 1_500)
    return [whole, torn, holed]


def _spoil(root: Path, start: int, count: int) -> None:
    segment = min((root / "commitlog").iterdir())
    with segment.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * count)


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_both_engines_print_the_same(
    spark: SparkSession, stores: list[Path], question: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for paths in ([stores[0]], [stores[1]], [stores[2]], stores[:2]):
        found = []
        for engine in ("local", "spark"):
            code = main(["pipeline", "show", *map(str, paths), *question, "--engine", engine])
            found.append((code, *capsys.readouterr()))
        assert found[0] == found[1]
        assert found[0][0] == 0
