"""Filters and options give the same rows as reading everything, and read less."""

from __future__ import annotations

import base64
import importlib
import json
import random
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.types import StructField, StructType, TimestampType, VariantVal

from rewindmq.broker.store import MessageStore, StoreConfig
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.index.file import IndexFile
from rewindmq.broker.store.layout.index import (
    ENTRY,
    ENTRY_BYTES,
    HEADER,
    HEADER_BYTES,
    SLOT_BYTES,
    file_bytes,
    index_keys,
    key_hash,
)
from rewindmq.pipeline.counters import read_counters
from rewindmq.pipeline.pushdown import plan, queues, times
from rewindmq.pipeline.source import StoreDataSource
from tests.pipeline.direct import rows
from tests.pipeline.logs import LogWriter, random_store
from tests.pipeline.records import plain, write_log
from tests.pipeline.reference import read_log

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = ["physicalOffset", "topic", "queueId", "queueOffset", "storeTimestamp", "uniqueKey", "keys"]
ComparingFilter = (
    EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual | In | StringStartsWith
)
COMPARED: dict[type[ComparingFilter], Callable[[Any, Any], bool]] = {
    EqualTo: lambda one, two: one == two,
    GreaterThan: lambda one, two: one > two,
    GreaterThanOrEqual: lambda one, two: one >= two,
    LessThan: lambda one, two: one < two,
    LessThanOrEqual: lambda one, two: one <= two,
    In: lambda one, many: one in many,
    StringStartsWith: lambda one, start: one.startswith(start),
}
Row = dict[str, Any]
Condition = Callable[[Row], bool]


def holds(row: Row, condition: Filter) -> bool:
    if isinstance(condition, IsNotNull):
        return row[condition.attribute[0]] is not None
    assert isinstance(condition, ComparingFilter), condition
    value = row[condition.attribute[0]]
    return value is not None and COMPARED[type(condition)](value, condition.value)


def random_filters(rng: random.Random, all_rows: Sequence[Row]) -> list[Filter]:
    """Conditions about values that occur, and some that do not."""
    found: list[Filter] = []
    some = rng.choice(all_rows)
    for name in rng.sample(COLUMNS[:-1], rng.randrange(1, 4)):
        value, path = some[name], (name,)
        kind: type[ComparingFilter | IsNotNull] = rng.choice(list(COMPARED))
        if name in ("topic", "uniqueKey"):
            if name == "topic" and rng.random() < 0.1:
                value = "Nobody"
            kind = rng.choice((EqualTo, In, StringStartsWith, IsNotNull))
        elif isinstance(value, datetime):
            value += timedelta(microseconds=rng.choice((0, 0, 1, -1, 500, 4_000_000, -3_000_000)))
        else:
            value += rng.choice((0, 0, 1, -1))
        if kind is StringStartsWith and not isinstance(value, str):
            kind = GreaterThanOrEqual
        if issubclass(kind, IsNotNull):
            found.append(kind(path))
        elif issubclass(kind, In):
            found.append(kind(path, (value, rng.choice(all_rows)[name])))
        else:
            found.append(kind(path, value))
    return found


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Random stores; every second store has a key index."""
    folder = tmp_path_factory.mktemp("stores")
    made = []
    for seed in range(8):
        made.append(folder / f"store-{seed}")
        random_store(made[-1], seed)
        if seed % 2:
            add_index(made[-1])
    return made


def add_index(store: Path, slots: int = 7, entries: int = 28) -> None:
    """Add the key index of a broker to the log, in several small files."""
    segments = {path.stat().st_size for path in (store / "commitlog").iterdir()}
    queues = {path.stat().st_size for path in (store / "consumequeue").glob("*/*/*")}
    config = StoreConfig(
        mapped_file_size_commit_log=segments.pop(),
        mapped_file_size_consume_queue=queues.pop(),
        max_hash_slot_num=slots,
        max_index_num=entries,
    )
    opened = MessageStore(store, config, lambda: 1_700_000_000_000)
    opened.open()
    opened.update_index(opened.max_commit_log_offset, 1_000_000)
    opened.close()


@pytest.fixture
def fine_grain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small stores be read in as many parts as large ones are."""
    monkeypatch.setattr(queues, "GAP_BYTES", 16)
    monkeypatch.setattr(plan, "GAP_BYTES", 16)
    monkeypatch.setattr(times, "_GRAIN_BYTES", 64)


# Every second store has an index, so the default group has two stores of each kind.
SEEDS = [
    *range(4),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 8)),
]


@pytest.mark.usefixtures("fine_grain")
@pytest.mark.parametrize("seed", SEEDS)
def test_filters_find_what_reading_everything_finds(stores: list[Path], seed: int, full: bool) -> None:
    store = stores[seed]
    everything = rows(store, columns=COLUMNS)
    rng = random.Random(seed)
    for _ in range(100 if full else 5):
        filters = random_filters(rng, everything)
        found = rows(store, columns=COLUMNS, filters=filters)
        # Spark evaluates the filters again; a row that is omitted here is lost.
        assert [row for row in found if all(holds(row, one) for one in filters)] == [
            row for row in everything if all(holds(row, one) for one in filters)
        ], filters


def stored_at(moment: datetime, *, is_from: bool) -> Condition:
    """From a moment on, or before it."""
    return lambda row: (row["storeTimestamp"] >= moment) == is_from


def random_options(rng: random.Random, all_rows: Sequence[Row]) -> tuple[dict[str, str], Condition]:
    some = rng.choice(all_rows)
    options: dict[str, str] = {}
    conditions: list[Condition] = []
    if rng.random() < 0.7:
        topics = {some["topic"], rng.choice(all_rows)["topic"]}
        options["topic"] = ",".join(topics)
        conditions.append(lambda row: row["topic"] in topics)
    if rng.random() < 0.3:
        options["queueId"] = str(some["queueId"])
        conditions.append(lambda row: row["queueId"] == some["queueId"])
    if rng.random() < 0.5:
        key = rng.choice([some["uniqueKey"], *some["keys"]])
        options["key"] = key
        conditions.append(lambda row: row["uniqueKey"] == key or key in row["keys"])
    for name in ("from", "to"):
        if rng.random() < 0.3:
            moment = rng.choice(all_rows)["storeTimestamp"]
            options[name] = str((moment - EPOCH) // timedelta(milliseconds=1))
            conditions.append(stored_at(moment, is_from=name == "from"))
    return options, lambda row: all(condition(row) for condition in conditions)


@pytest.mark.usefixtures("fine_grain")
@pytest.mark.parametrize("seed", SEEDS)
def test_options_find_exactly_what_they_ask_for(stores: list[Path], seed: int, full: bool) -> None:
    store = stores[seed]
    everything = rows(store, columns=COLUMNS)
    rng = random.Random(100 + seed)
    for _ in range(100 if full else 4):
        options, is_wanted = random_options(rng, everything)
        wanted = [row for row in everything if is_wanted(row)]
        assert rows(store, columns=COLUMNS, options=options) == wanted, options
        without = {"index": "false", "useConsumeQueues": "false", **options}
        assert rows(store, columns=COLUMNS, options=without) == wanted


@pytest.mark.usefixtures("fine_grain")
def test_a_clock_set_back_within_the_slack_loses_nothing(tmp_path: Path) -> None:
    rng = random.Random(1)
    clock, makers, times = 1_700_000_000_000, [], []
    for _ in range(3_000):
        clock += rng.randrange(100)
        times.append(clock - rng.randrange(4_000))
        makers.append(plain(bytes(200), store_timestamp=times[-1]))
    write_log(tmp_path / "store", makers, 1 << 18)
    for _ in range(20):
        low = rng.choice(times)
        options = {"from": str(low), "to": str(low + rng.randrange(1, 9_000)), "clockSlack": "4s"}
        found = rows(tmp_path / "store", columns=["storeTimestampMs"], options=options)
        assert [row["storeTimestampMs"] for row in found] == [
            time for time in times if low <= time < int(options["to"])
        ]


@pytest.mark.usefixtures("fine_grain")
def test_renumbered_entries_are_found_by_the_offsets_of_their_records(
    tmp_path: Path,
) -> None:
    # docs/spec/store.md 4.6: a record is missing, and entries built from the log are numbered without it.
    placed = write_log(
        tmp_path / "store",
        [plain(bytes(40_000), queue_offset=offset, topic=topic) for offset in (0, 2, 3, 4) for topic in "TU"],
        1 << 20,
    )
    entries = b"".join(
        position.to_bytes(8, "big") + len(record).to_bytes(4, "big") + bytes(8)
        for position, record in placed[::2]
    )
    for topic in "TU":
        queue = tmp_path / "store" / "consumequeue" / topic / "0"
        queue.mkdir(parents=True)
        (queue / f"{0:020d}").write_bytes(entries.ljust(200, b"\0"))
    found = rows(
        tmp_path / "store",
        columns=["queueOffset", "topic"],
        filters=[EqualTo(("topic",), "T"), EqualTo(("queueOffset",), 2)],
    )
    assert found == [{"queueOffset": 2, "topic": "T"}]


@pytest.mark.usefixtures("fine_grain")
def test_an_index_of_another_log_is_not_believed(stores: list[Path], tmp_path: Path) -> None:
    other = next(store for store in stores if (store / "index").exists())
    store = next(store for store in stores if not (store / "index").exists())
    for row in rows(store, columns=COLUMNS)[::7]:
        options = {"topic": row["topic"], "key": row["uniqueKey"]}
        found = rows(store, columns=COLUMNS, index=str(other), **options)
        assert row in found


@pytest.mark.usefixtures("fine_grain")
def test_a_key_of_another_topic_with_the_same_hash_is_not_found(tmp_path: Path) -> None:
    # "AaTopic#k" and "BBTopic#k" are one hash in the key index.
    writer = LogWriter(tmp_path / "store")
    for topic in ("AaTopic", "BBTopic"):
        writer.put(topic, keys="k")
    writer.finish()
    add_index(tmp_path / "store", slots=7, entries=100)
    for topic in ("AaTopic", "BBTopic"):
        found = rows(tmp_path / "store", columns=COLUMNS, topic=topic, key="k")
        assert [(row["topic"], row["keys"]) for row in found] == [(topic, ["k"])]


@pytest.mark.usefixtures("fine_grain")
def test_entries_that_a_live_broker_adds_after_the_header_was_read_hide_no_older_ones(tmp_path: Path) -> None:
    store = tmp_path / "store"
    random_store(store, 2)
    add_index(store, slots=7, entries=4_000)
    (index,) = (store / "index").iterdir()
    everything = {row["physicalOffset"]: row for row in rows(store, columns=COLUMNS)}
    data = index.read_bytes()
    begin_time, _, begin, _, slots_used, count = HEADER.unpack_from(data)
    for early in (5, count // 3, count // 2):
        _, position, _, _ = ENTRY.unpack_from(data, HEADER_BYTES + 7 * SLOT_BYTES + (early - 1) * ENTRY_BYTES)
        time = (everything[position]["storeTimestamp"] - EPOCH) // timedelta(milliseconds=1)
        index.write_bytes(
            HEADER.pack(begin_time, time, begin, position, slots_used, early) + data[HEADER_BYTES:]
        )
        for row in list(everything.values())[::9]:
            options = {"topic": row["topic"], "key": row["uniqueKey"], "hashSlots": "7"}
            assert rows(store, columns=COLUMNS, **options) == [row]


def cover_only(store: Path, low: int, high: int) -> None:
    """Leave the consume queues and the key index only entries of records in [low, high)."""
    for path in (store / "consumequeue").glob("*/*/*"):
        data = path.read_bytes()
        entries = [data[at : at + 20] for at in range(0, len(data), 20)]
        for number, entry in enumerate(entries):
            position, size = int.from_bytes(entry[:8], "big"), int.from_bytes(entry[8:12], "big")
            if position >= high:
                entries[number] = bytes(20)
            elif position < low and size:
                # Recovery writes this filler before the first entry (docs/spec/store.md 9.6).
                entries[number] = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
        path.write_bytes(b"".join(entries))
    disk = OsDisk()
    (store / "index").mkdir(exist_ok=True)
    path = store / "index" / "20260101000000000"
    disk.create(path, file_bytes(7, 4_000))
    index = IndexFile(path, 7, 4_000, disk, MmapCache(disk))
    for message in read_log(store):
        if low <= message.commit_log_offset < high:
            for key in index_keys(message.properties.get("UNIQ_KEY"), message.keys):
                hashed = key_hash(message.topic, key)
                index.put(hashed, message.commit_log_offset, message.store_timestamp)
    index.flush()


@pytest.mark.usefixtures("fine_grain")
@pytest.mark.parametrize(
    "seed", [2, pytest.param(4, marks=pytest.mark.slow(full_only="the first seed has what neither covers"))]
)
def test_what_queues_and_index_do_not_cover_is_read(tmp_path: Path, seed: int, full: bool) -> None:
    store = tmp_path / "store"
    random_store(store, seed)
    everything = rows(store, columns=COLUMNS)
    places = [row["physicalOffset"] for row in everything]
    cover_only(store, places[len(places) // 3], places[2 * len(places) // 3])
    for number, row in enumerate(everything):
        if not full and number % 10 not in (3, 8):
            continue
        key = {"key": row["uniqueKey"], "hashSlots": "7"} if number % 2 else {"queueId": str(row["queueId"])}
        wanted = [
            one
            for one in everything
            if one["topic"] == row["topic"]
            and (one["uniqueKey"] == row["uniqueKey"] if number % 2 else one["queueId"] == row["queueId"])
        ]
        assert rows(store, columns=COLUMNS, topic=row["topic"], **key) == wanted
        if number % 2:
            assert rows(store, columns=COLUMNS, **key) == wanted


@pytest.mark.usefixtures("fine_grain")
def test_consume_queues_and_indexes_that_a_job_made_stand_in_for_lost_ones(
    stores: list[Path], tmp_path: Path, full: bool
) -> None:
    store = next(store for store in stores if (store / "index").exists())
    everything = rows(store, columns=COLUMNS)
    shutil.copytree(store / "commitlog", tmp_path / "bare" / "commitlog")
    for number, row in enumerate(everything[:: 1 if full else 15]):
        key = {"key": row["uniqueKey"]} if number % 2 else {}
        wanted = [
            one
            for one in everything
            if one["topic"] == row["topic"] and (not key or one["uniqueKey"] == row["uniqueKey"])
        ]
        options = {"topic": row["topic"], **key}
        assert rows(tmp_path / "bare", columns=COLUMNS, index=str(store), **options) == wanted


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 MB of log with consume queues and a key index: 3.6 KB messages, one every 400 ms."""
    root = tmp_path_factory.mktemp("large") / "store"
    writer = LogWriter(root, segment_bytes=16 << 20, consume_queue_bytes=200_000)
    body = random.Random(0).randbytes(3_600)
    for number in range(14_000):
        writer.now += 400
        topic = "Rare" if number % 1_250 == 7 else "Often"
        writer.put(topic, number % 4, body, keys=f"order-{number}")
    writer.finish()
    add_index(root, slots=12_500, entries=50_000)
    return root


def read_bytes(large: Path, folder: Path, **options: str) -> tuple[int, int]:
    """How many rows, and bytes read for them."""
    options["counters"] = str(folder)
    found = rows(large, columns=["physicalOffset", "topic"], options=options)
    counters = read_counters(folder)
    assert counters.records == len(found)
    assert counters.bytes_read >= counters.bytes_planning > 0
    return len(found), counters.bytes_read


def log_bytes(store: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in (store / "commitlog").iterdir())


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"from": "1700003000000", "to": "1700003056000"}, 140),
        ({"topic": "Often", "key": "order-7808"}, 1),
        ({"key": "order-7808"}, 1),
        ({"topic": "Rare"}, 12),
    ],
    ids=[
        "one percent of the time",
        "one key with the index",
        "one key of any topic with the index",
        "a topic with few messages",
    ],
)
def test_a_narrow_question_reads_at_most_three_percent(
    large: Path, tmp_path: Path, options: dict[str, str], count: int
) -> None:
    found, read = read_bytes(large, tmp_path / "counters", **options)
    assert found == count
    assert read <= 0.03 * log_bytes(large)


def test_consume_queues_that_a_job_made_spare_as_much_reading(large: Path, tmp_path: Path) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    for segment in (large / "commitlog").iterdir():
        (tmp_path / "store" / "commitlog" / segment.name).hardlink_to(segment)
    found, read = read_bytes(tmp_path / "store", tmp_path / "counters", topic="Rare", index=str(large))
    assert found == 12
    assert read <= 0.03 * log_bytes(large)


def test_a_key_without_an_index_is_found_by_reading_everything(large: Path, tmp_path: Path) -> None:
    found, read = read_bytes(large, tmp_path / "counters", key="order-7808", topic="Often", index="false")
    assert found == 1
    assert read > 0.9 * log_bytes(large)


def test_a_time_that_python_does_not_have_is_no_bound(
    stores: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark's process for filters does, whose module it runs."""
    monkeypatch.setattr(VariantVal, "toPython", VariantVal.toPython)
    worker = importlib.import_module("pyspark.sql.worker.data_source_pushdown_filters")
    source = StoreDataSource({"view": "messages", "paths": json.dumps([str(stores[0])])})
    schema = StructType([StructField("storeTimestamp", TimestampType())])
    reader = source.reader(schema)
    for year, kind in ((10_000, "LessThan"), (-1, "GreaterThan"), (292_277, "EqualTo")):
        microseconds = (year - 1970) * 31_556_952_000_000
        # A variant of the type TIMESTAMP, and no names.
        value = bytes((12 << 2,)) + microseconds.to_bytes(8, "little", signed=True)
        asked = worker.deserializeFilter(
            {
                "name": kind,
                "columnPath": ["storeTimestamp"],
                "value": {
                    "value": base64.b64encode(value).decode(),
                    "metadata": base64.b64encode(b"\x01\x00\x00").decode(),
                },
                "isNegated": False,
            }
        )
        assert list(reader.pushFilters([asked])) == [asked]
    batches: list[Any] = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert sum(batch.num_rows for batch in batches) == len(read_log(stores[0]))


@pytest.mark.usefixtures("fine_grain")
def test_a_far_time_among_others_leaves_their_rows(stores: list[Path]) -> None:
    everything = rows(stores[0], columns=COLUMNS)
    unknown: Any = None
    filters: list[Filter] = [In(("storeTimestamp",), unknown), LessThan(("storeTimestamp",), unknown)]
    assert rows(stores[0], columns=COLUMNS, filters=filters) == everything
