"""Selective reads of a large store by Spark, and the same queries by DuckDB on its Parquet copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.pipeline_store import START_MS, Filled, key_of, topic_of
from bench.stopwatch import timed
from bench.table import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_THREADS: Final = 2
# The largest part of the log that a selective query may read, in percent.
_MAX_SHARE: Final = 3.0


class _Query(NamedTuple):
    """A query for Spark and for DuckDB, which must return the same rows."""

    name: str
    run_spark: Callable[[], list[tuple[Any, ...]]]
    sql: str


def _period(store: Filled) -> tuple[int, int]:
    """Return the middle 1 % of the store's time range: begin and exclusive end, ms."""
    middle = START_MS + store.messages // 2
    return middle, middle + max(1, store.messages // 100)


def _one_key(store: Filled, indexed: Path) -> dict[str, str]:
    """Return the data source's options for one key."""
    key = store.keys // 2
    return {"topic": topic_of(key), "key": key_of(key), "index": str(indexed)}


def selection_rows(
    spark: SparkSession, store: Filled, indexed: Path, counters: Path, rounds: int
) -> list[Row]:
    """Measure which share of the log is read for 1 % of the time range, and for one key."""
    from rewindmq.pipeline.counters import read_counters
    from rewindmq.pipeline.reading import read_store

    begin, end = _period(store)
    selections = {
        "1 % of the time": {"from": str(begin), "to": str(end)},
        "one key, by the index": _one_key(store, indexed),
    }
    rows: list[Row] = []
    for name, options in selections.items():
        share = Row(f"{name}: read of the log", "%", _MAX_SHARE, higher_is_better=False)
        spent = Row(f"{name}: time", "ms", higher_is_better=False)
        for number in range(rounds):
            folder = counters / f"{len(rows)}-{number}"
            messages = read_store(spark, store.root, counters=str(folder), **options)
            spent.samples.append(1e3 * timed(_run, messages).seconds)
            counted = read_counters(folder)
            share.samples.append(100 * counted.bytes_read / store.log_bytes)
            share.note = f"{counted.records:,} messages with bodies, {counted.ranges:,} ranges of the log"
        rows += [share, spent]
    return rows


def query_rows(spark: SparkSession, store: Filled, indexed: Path, rounds: int) -> list[Row]:
    """Run three queries, by Spark on the log and by DuckDB on the Parquet copy."""
    import duckdb

    rows = []
    with duckdb.connect() as database:
        database.execute(f"SET threads = {_THREADS}")
        for query in _queries(spark, store, indexed):
            by_spark = Row(f"{query.name}: Spark on the log", "ms", higher_is_better=False)
            by_duckdb = Row(f"{query.name}: DuckDB on the Parquet copy", "ms", higher_is_better=False)
            for _ in range(rounds):
                spark_run = timed(query.run_spark)
                duckdb_run = timed(_run_sql, database, query.sql)
                assert spark_run.result == duckdb_run.result, (
                    query.name,
                    spark_run.result,
                    duckdb_run.result,
                )
                by_spark.samples.append(1e3 * spark_run.seconds)
                by_duckdb.samples.append(1e3 * duckdb_run.seconds)
            rows += [by_spark, by_duckdb]
    return rows


def _queries(spark: SparkSession, store: Filled, indexed: Path) -> list[_Query]:
    from rewindmq.pipeline.reading import read_store

    begin, end = _period(store)
    one_key = _one_key(store, indexed)
    copy = f"FROM read_parquet('{indexed}/current/messages/*.parquet')"

    def by_topic() -> list[tuple[Any, ...]]:
        rows = read_store(spark, store.root, columns=["topic"]).groupBy("topic").count()
        return sorted(tuple(row) for row in rows.collect())

    def counted(**options: str) -> Callable[[], list[tuple[Any, ...]]]:
        return lambda: [(read_store(spark, store.root, columns=["physicalOffset"], **options).count(),)]

    return [
        _Query("messages by topic", by_topic, f"SELECT topic, count(*) {copy} GROUP BY topic ORDER BY topic"),
        _Query(
            "messages of 1 % of the time",
            counted(**{"from": str(begin), "to": str(end)}),
            f"SELECT count(*) {copy} WHERE epoch_ms(storeTimestamp) >= {begin}"
            f" AND epoch_ms(storeTimestamp) < {end}",
        ),
        _Query(
            "messages with one key",
            counted(**one_key),
            f"SELECT count(*) {copy} WHERE topic = '{one_key['topic']}'"
            f" AND list_contains(keys, '{one_key['key']}')",
        ),
    ]


def _run_sql(database: Any, sql: str) -> list[tuple[Any, ...]]:
    return list(database.execute(sql).fetchall())


def _run(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()
