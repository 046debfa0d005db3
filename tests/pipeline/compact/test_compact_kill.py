"""kill -9 in the middle of a compaction: the old or the new output exists, and the next run continues."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import Format
from rewindmq.pipeline.engines.local_engine import LocalEngine
from tests.pipeline.compact.compact_killed import options
from tests.pipeline.compact.compact_reference import (
    compaction_queues,
    content,
    expected_queues,
    expected_store,
    fingerprint,
)
from tests.pipeline.logs import LogWriter
from tests.pipeline.reference import read_log
from tests.support.repository import importing_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindmq.pipeline.engines.runner import Runner

STEPS = [
    "reading the log",
    "selecting the messages to keep",
    "assigning positions",
    "writing the kept messages",
    "writing the configuration",
    "publishing",
]
OTHER_STEP = pytest.mark.slow(
    full_only="CI kills Spark once for each format, and the local engine at three steps"
)
# What is killed when, and the first step that a re-run has to do.
PLACES = [
    pytest.param(Format.COMPACTION, "0-groups", 0, id="0-groups", marks=OTHER_STEP),
    pytest.param(Format.STORE, "0-survivors", 1, id="0-survivors", marks=OTHER_STEP),
    pytest.param(Format.COMPACTION, "0-layout", 2, id="0-layout", marks=OTHER_STEP),
    pytest.param(Format.STORE, "0-files", 3, id="0-files", marks=OTHER_STEP),
    pytest.param(Format.COMPACTION, "0-config", 4, id="0-config", marks=OTHER_STEP),
    pytest.param(Format.STORE, "manifest", 5, id="manifest"),
    pytest.param(Format.COMPACTION, "tidy", None, id="tidy"),
]


# The local engine has written half of a Parquet file, or all files of a step.
LOCAL_PLACES = [
    pytest.param("parquet", 0, id="parquet"),
    pytest.param("0-survivors", 1, id="0-survivors", marks=pytest.mark.slow),
    pytest.param("manifest", 5, id="manifest", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "place", "first_step"), PLACES)
def test_a_killed_run_leaves_the_old_or_the_new_and_is_gone_on_with(
    spark: SparkSession, tmp_path: Path, format_: Format, place: str, first_step: int | None
) -> None:
    kill_and_repeat(spark, "spark", tmp_path, format_, place, first_step)


@pytest.mark.parametrize(("place", "first_step"), LOCAL_PLACES)
def test_a_killed_run_of_the_local_engine_leaves_no_half_file_and_is_gone_on_with(
    tmp_path: Path, place: str, first_step: int
) -> None:
    kill_and_repeat(LocalEngine(), "local", tmp_path, Format.STORE, place, first_step)


def kill_and_repeat(
    runner: Runner, engine: str, tmp_path: Path, format_: Format, place: str, first_step: int | None
) -> None:
    """Compact a store twice; the second run is killed, and repeated."""
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(store, segment_bytes=8_192)
    _put(writer, 60)
    writer.store.flush_all()
    compact(runner, store, out, options(format_))
    old = fingerprint(out / "current")
    _put(writer, 50)
    writer.finish()
    source = fingerprint(store)
    words = [str(store), str(out), format_, place, engine]
    killed = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.compact.compact_killed", *words],
        env=importing_environment(),
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    if place != "tidy":
        assert fingerprint(out / "current") == old
    for path in (out / "staging").rglob("*.parquet"):
        pq.read_table(path)
    told: list[str] = []
    summary = compact(runner, store, out, options(format_), told.append)
    assert [text.partition(" of ")[0] for text in told] == ([] if first_step is None else STEPS[first_step:])
    assert (summary.is_new, summary.generation) == (place != "tidy", 2)
    assert {path.name for path in out.iterdir()} == {"manifest.json", "current", "generation-2"}
    assert fingerprint(store) == source
    _check(store, out / "current", format_)


def _put(writer: LogWriter, count: int) -> None:
    for number in range(count):
        writer.now += 300
        writer.put("Orders", number % 2, b"%d" % writer.now, keys=f"key-{number % 33}")


def _check(store: Path, root: Path, format_: Format) -> None:
    if format_ is Format.STORE:
        wanted = expected_store(store, ["Orders"], options(format_))
        assert [content(m) for m in read_log(root)] == [content(m) for m in wanted]
        return
    queues = {
        queue: [(m.queue_offset, content(m)) for m in messages]
        for queue, messages in expected_queues(store, ["Orders"], options(format_)).items()
    }
    assert {
        queue: [(m.queue_offset, content(m)) for m in messages]
        for queue, messages in compaction_queues(root).items()
    } == queues
