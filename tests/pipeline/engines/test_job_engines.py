"""The jobs find and write the same with both engines, in stores and outputs with any damage."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format, Keyless, Scope
from rewindmq.pipeline.engines.local_engine import LocalEngine
from rewindmq.pipeline.index.job import build_index
from rewindmq.pipeline.index.options import IndexOptions
from rewindmq.pipeline.reading import read_store
from rewindmq.pipeline.replay.job import replay_plan
from rewindmq.pipeline.verify.job import verify
from rewindmq.pipeline.verify.report import render_text
from tests.pipeline.index.index_reference import files_below
from tests.pipeline.logs import GROUP, LogWriter, random_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rewindmq.pipeline.engines.runner import Runner

OPTIONS = IndexOptions(max_hash_slot_num=13, max_index_num=60)
COMPACT_FOLDERS = ("commitlog", "compaction", "config")
INDEX_FOLDERS = ("consumequeue", "timeindex", "index", "messages")
# A place in the first file of a folder, as a share of its length, and what is written there.
SPOTS = st.lists(
    st.tuples(
        st.sampled_from(("commitlog", "consumequeue", "index")),
        st.floats(0.01, 0.4),
        st.binary(min_size=1, max_size=40),
    ),
    max_size=3,
)


def spoil(root: Path, folder: str, share: float, data: bytes) -> None:
    path = min(path for path in (root / folder).rglob("*") if path.is_file())
    content = bytearray(path.read_bytes())
    at = int(share * len(content))
    content[at : at + len(data)] = data
    path.write_bytes(content)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 40), spots=SPOTS)
def test_index_and_verify_are_the_same_with_both_engines(
    spark: SparkSession, seed: int, spots: list[tuple[str, float, bytes]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, outs = Path(folder) / "store", [Path(folder) / name for name in ("local", "spark")]
        random_store(store, seed)
        for spot in spots:
            if spot[0] == "commitlog":
                spoil(store, *spot)
        engines: tuple[Runner, ...] = (LocalEngine(), spark)
        made = [build_index(engine, store, out, OPTIONS) for engine, out in zip(engines, outs, strict=True)]
        assert replace(made[0], output="") == replace(made[1], output="")
        local, in_spark = (files_below(out / "current", *INDEX_FOLDERS) for out in outs)
        assert local == in_spark
        for spot in spots:
            if spot[0] != "commitlog":
                spoil(outs[0] / "generation-1", *spot)
        reports = [verify(engine, store, outs[0]).to_json() for engine in engines]
        assert reports[0] == reports[1]


@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 40),
    options=st.builds(
        CompactOptions,
        format=st.sampled_from(Format),
        scope=st.sampled_from(Scope),
        keyless=st.sampled_from(Keyless),
        tombstone_grace_ms=st.sampled_from((0, 20_000)),
        log_file_bytes=st.just(4_096),
        cq_file_bytes=st.just(506),
    ),
)
def test_compact_its_proof_and_a_replay_plan_are_the_same_with_both_engines(
    spark: SparkSession, seed: int, options: CompactOptions
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, outs = Path(folder) / "store", [Path(folder) / name for name in ("local", "spark")]
        random_store(store, seed)
        engines: tuple[Runner, ...] = (LocalEngine(), spark)
        made = [compact(engine, store, out, options) for engine, out in zip(engines, outs, strict=True)]
        assert replace(made[0], output="") == replace(made[1], output="")
        local, in_spark = (files_below(out / "current", *COMPACT_FOLDERS) for out in outs)
        assert local == in_spark
        assert any("log" in name.lower() for name in local)
        reports = [verify(engine, store, outs[0]).to_json() for engine in engines]
        assert reports[0] == reports[1]
        plans = [
            replay_plan(engine, [store], group=GROUP, topic="Orders", to="offset:2").to_json()
            for engine in engines
        ]
        assert plans[0] == plans[1]


@pytest.mark.parametrize("first_is_local", [True, False])
def test_each_engine_continues_the_outputs_of_the_other(
    spark: SparkSession, tmp_path: Path, first_is_local: bool
) -> None:
    store, compacted, indexed = (tmp_path / name for name in ("store", "compacted", "indexed"))
    writer = LogWriter(store, segment_bytes=8_192)
    engines: list[Runner] = [LocalEngine(), spark]
    for generation, engine in enumerate(engines if first_is_local else engines[::-1], 1):
        for number in range(40):
            writer.now += 10
            writer.put("Orders", number % 2, b"body %d" % number, keys=f"key-{number % 7}")
        writer.store.flush_all()
        options = CompactOptions(format=Format.STORE)
        assert compact(engine, store, compacted, options).generation == generation
        assert build_index(engine, store, indexed, OPTIONS).generation == generation
    writer.finish()
    for out in (compacted, indexed):
        report = verify(LocalEngine(), store, out)
        assert report.is_intact, render_text(report)


def test_spark_reads_the_parquet_copy(spark: SparkSession, tmp_path: Path) -> None:
    random_store(tmp_path / "store", 4)
    build_index(LocalEngine(), tmp_path / "store", tmp_path / "out", OPTIONS)
    rows = spark.read.parquet(str(tmp_path / "out" / "current" / "messages"))
    messages = read_store(spark, tmp_path / "store", columns=rows.columns)
    assert [(field.name, field.dataType) for field in rows.schema] == [
        (field.name, field.dataType) for field in messages.schema
    ]
    assert rows.count() == messages.count()
