"""``show`` prints the same with both engines."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.__main__ import main
from rewindmq.pipeline.engines.choice import ENGINES
from tests.pipeline.logs import random_store
from tests.pipeline.records import RecordMaker, compressed, plain, record_makers, write_log

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


# Bodies and properties that a table or a line of JSON could show in two ways.
PLAIN_RECORDS = [
    plain(b""),
    plain(b"\xff\x00\xfe"),
    plain("тело".encode()),
    plain(properties=b"TAGS\x01a || b\x02KEYS\x01one  two\x02b\x01x\x01y\x02a\x01=,;\x02b\x012\x02"),
    plain(properties=b"UNIQ_KEY\x01\xff\x02TAGS\x01\x1b[31m\x02"),
    *(plain(stored, sys_flag=flag) for stored, flag in compressed(b"body " * 20)),
]


@settings(max_examples=8, deadline=None)
@given(
    makers=st.lists(st.one_of(st.sampled_from(PLAIN_RECORDS), record_makers()), min_size=1, max_size=16),
    spoilt=st.none() | st.tuples(st.integers(0, 4_000), st.binary(min_size=1, max_size=60)),
)
def test_both_engines_print_any_record_the_same(
    spark: SparkSession, makers: list[RecordMaker], spoilt: tuple[int, bytes] | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        write_log(store, makers, 65_536)
        if spoilt is not None:
            with next((store / "commitlog").iterdir()).open("r+b") as file:
                file.seek(spoilt[0])
                file.write(spoilt[1])
        for question in (("--json",), (), ("--view", "damage", "--json")):
            asked = (*question, "--limit", "0", "--engine")
            local, in_spark = (shown(store, *asked, engine) for engine in ENGINES[1:])
            assert local == in_spark


def shown(store: Path, *question: str) -> tuple[int, list[str], str]:
    """The exit code, the lines and the errors that ``show`` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
        code = main(["pipeline", "show", str(store), *question, "--quiet"])
    return code, out.getvalue().splitlines(), error.getvalue()
