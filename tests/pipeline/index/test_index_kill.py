"""kill -9 in the middle of an index run: the old or the new output exists, and the next run continues."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq.pipeline.index import scan
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions
from tests.pipeline.index.index_reference import files_below, index_files, postings, queue_files
from tests.pipeline.logs import LogWriter
from tests.pipeline.reference import read_log
from tests.support.repository import importing_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = IndexOptions(max_hash_slot_num=13, max_index_num=60)
STEPS = ["reading the log", "writing consume queues and the time index", "writing the key index"]
OTHER_STEP = pytest.mark.slow(full_only="CI kills Spark in the middle; an installation ends at every step")
# What is killed when, and which steps a re-run has to do.
PLACES = [
    pytest.param("scan", 0, id="scan", marks=OTHER_STEP),
    pytest.param("queues", 1, id="queues"),
    pytest.param("index", 2, id="index", marks=OTHER_STEP),
    pytest.param("rest", 3, id="rest", marks=OTHER_STEP),
    pytest.param("manifest", 3, id="manifest", marks=OTHER_STEP),
    pytest.param("tidy", None, id="tidy", marks=OTHER_STEP),
]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "first_step"), PLACES)
def test_a_killed_run_leaves_the_old_or_the_new_and_is_gone_on_with(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    first_step: int | None,
) -> None:
    monkeypatch.setattr(scan, "_PART_BYTES", 30_000)
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store, segment_bytes=8_192, consume_queue_bytes=400)
    _put(writer, 100)
    writer.store.flush_all()
    build_index(spark, store, out, SMALL)
    old = files_below(out / "current", ".")
    _put(writer, 70)
    writer.finish()
    killed = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.index.index_killed", str(store), str(out), place],
        env=importing_environment(),
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    if place != "tidy":
        assert files_below(out / "current", ".") == old
    told: list[str] = []
    summary = build_index(spark, store, out, SMALL, told.append)
    assert told == ([] if first_step is None else STEPS[first_step:])
    assert (summary.is_new, summary.generation) == (place != "tidy", 2)
    folder = out / "current"
    assert {path.name for path in out.iterdir()} == {"manifest.json", "current", "generation-2"}
    log = read_log(store)
    queues = files_below(folder, "consumequeue", "timeindex")
    del queues["timeindex/position"]
    assert queues == queue_files(log, 400)
    found = files_below(folder, "index")
    assert [found[name] for name in sorted(found)] == index_files(postings(log), 13, 60)
    _put_more_and_check(spark, store, out)


def _put(writer: LogWriter, count: int) -> None:
    for number in range(count):
        writer.now += 300
        writer.put("Orders", number % 3, keys=f"a{number % 7} b", tag="T")


def _put_more_and_check(spark: SparkSession, store: Path, out: Path) -> None:
    """No file of the killed run disturbs the next run."""
    writer = LogWriter(store, segment_bytes=8_192, consume_queue_bytes=400, now=1_700_001_000_000)
    _put(writer, 5)
    writer.finish()
    summary = build_index(spark, store, out, SMALL)
    assert (summary.generation, summary.messages) == (3, 5)
    assert {path.name for path in out.iterdir()} == {"manifest.json", "current", "generation-3"}
    assert files_below(out / "current", "consumequeue") == {
        name: data for name, data in queue_files(read_log(store), 400).items() if name.startswith("c")
    }
