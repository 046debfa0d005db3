"""``spark.read.format("rocketmq")`` in a real Spark: views, several stores, filters that reach it, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812

from rewindmq.broker.store import MessageStore, StoreConfig
from rewindmq.pipeline.counters import read_counters
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.options import OPTIONS, parse_options
from rewindmq.pipeline.reading import read_store
from rewindmq.pipeline.schema import MESSAGES, VIEWS
from rewindmq.pipeline.spark.errors import described, in_one_line
from rewindmq.pipeline.spark.session import register
from rewindmq.pipeline.views.messages import LogRowReader
from tests.pipeline.direct import rows as direct_rows
from tests.pipeline.logs import GROUP, LogWriter, random_store
from tests.pipeline.records import plain, write_log
from tests.pipeline.reference import read_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("cluster")
    made = [folder / "broker-a", folder / "broker-b"]
    for seed, store in enumerate(made):
        random_store(store, seed + 1)
    return made


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 8 MB in two segments, with a key index of two files and offsets of a group."""
    root = tmp_path_factory.mktemp("indexed") / "store"
    writer = LogWriter(root, segment_bytes=4 << 20, consume_queue_bytes=60_000)
    for number in range(4_000):
        writer.now += 1_000
        writer.put("Often", number % 2, bytes(1_500), keys=f"order-{number}")
    writer.offsets = {f"Often@{GROUP}": {0: 1_500, 1: 7}, f"Gone@{GROUP}": {3: 5}, "a@b@c": {0: 1}}
    writer.finish()
    config = StoreConfig(
        mapped_file_size_commit_log=4 << 20,
        mapped_file_size_consume_queue=60_000,
        max_hash_slot_num=1_200,
        max_index_num=4_800,
    )
    store = MessageStore(root, config, lambda: writer.now)
    store.open()
    store.update_index(store.max_commit_log_offset, 100_000)
    store.close()
    return root


def test_the_messages_of_several_stores_are_one_table(spark: SparkSession, stores: list[Path]) -> None:
    table = read_store(spark, stores)
    assert table.columns == [name for name, column in MESSAGES.items() if column.is_default]
    found = table.select("store", "physicalOffset", "topic", "body", "crcOk", "properties").collect()
    wanted = {
        (store.name, message.commit_log_offset): message for store in stores for message in read_log(store)
    }
    assert len(found) == len(wanted)
    for row in found:
        message = wanted[row.store, row.physicalOffset]
        assert (row.topic, bytes(row.body), row.crcOk) == (message.topic, message.stored_body, True)
        assert row.properties == message.properties


def test_any_columns_in_any_order_can_be_selected(spark: SparkSession, stores: list[Path]) -> None:
    names = list(reversed(MESSAGES))
    table = read_store(spark, stores[0], columns=names)
    assert table.columns == names
    assert table.count() == len(read_log(stores[0]))
    written = table.toArrow().to_pylist()
    direct = direct_rows(stores[0], columns=names)
    assert [row["physicalOffset"] for row in written] == [row["physicalOffset"] for row in direct]


def test_filters_reach_the_reader_and_spare_reading(
    spark: SparkSession, indexed: Path, tmp_path: Path
) -> None:
    everything = read_store(spark, indexed, columns=["topic"], counters=str(tmp_path / "all"))
    assert everything.count() == 4_000
    read = read_counters(tmp_path / "all").bytes_read
    assert read > 6_000_000
    questions = {
        "time": F.col("storeTimestamp").between(
            F.timestamp_millis(F.lit(1_700_001_000_000)), F.timestamp_millis(F.lit(1_700_001_040_000))
        ),
        "key": (F.col("topic") == "Often") & (F.col("uniqueKey") == f"7F0000010A2B18B4AAC2{3_001:012X}"),
        "offset": (F.col("topic") == "Often") & (F.col("queueId") == 1) & F.col("queueOffset").isin(5, 6),
        "position": F.col("physicalOffset") < 20_000,
    }
    counts = {}
    for name, condition in questions.items():
        folder = tmp_path / name
        table = read_store(spark, indexed, counters=str(folder)).where(condition)
        counts[name] = table.count()
        assert read_counters(folder).bytes_read < read / 8, name
    assert counts == {"time": 41, "key": 1, "offset": 2, "position": 13}


def test_without_filters_being_handed_over_the_same_is_found(spark: SparkSession, indexed: Path) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        table = spark.read.format("rocketmq").load(str(indexed)).where("topic = 'Often' and queueOffset = 7")
        assert table.select("queueId").orderBy("queueId").toArrow().to_pydict() == {"queueId": [0, 1]}
        found = read_store(spark, indexed, topic="Often", key="order-17").select("keys").collect()
        assert [row.keys for row in found] == [["order-17"]]
    finally:
        register(spark)


FAR = {
    "storeTimestamp < timestamp '+10000-01-01 00:00:00'": 4_000,
    "storeTimestamp > timestamp '-0001-01-01 00:00:00'": 4_000,
    "storeTimestamp >= timestamp '+294247-01-10 00:00:00'": 0,
    "storeTimestamp <= date '-0044-03-15'": 0,
    "storeTimestamp <> date '+12345-06-07'": 4_000,
    "bornTimestamp <=> timestamp '+10000-01-01 00:00:00'": 0,
    "storeTimestamp in (timestamp '+10000-01-01 00:00:00', timestamp_millis(1700000001000))": 1,
    "topic = 'Often' and queueOffset = 7 and storeTimestamp < timestamp '+10000-01-01 00:00:00'": 2,
}


@pytest.mark.parametrize("condition", FAR)
def test_a_time_that_python_does_not_have_may_stand_in_a_filter(
    spark: SparkSession, indexed: Path, condition: str
) -> None:
    """PySpark 4.3 converts the value of a filter before it asks the reader."""
    table = spark.read.format("rocketmq").load(str(indexed))
    assert table.where(condition).count() == FAR[condition]


def test_the_view_of_the_index_takes_such_a_filter_too(spark: SparkSession, indexed: Path) -> None:
    table = read_store(spark, indexed, view="index")
    assert table.where("storeTimestamp < timestamp '+10000-01-01 00:00:00'").count() == table.count() > 0


def test_entries_of_consume_queues_are_rows(spark: SparkSession, stores: list[Path]) -> None:
    found = read_store(spark, stores, view="consumequeue")
    entries = {
        (row.store, row.topic, row.queueId, row.queueOffset): (row.physicalOffset, row["size"])
        for row in found.collect()
    }
    wanted = {
        (store.name, message.topic, message.queue_id, message.queue_offset): (
            message.commit_log_offset,
            message.store_size,
        )
        for store in stores
        for message in read_log(store)
    }
    assert entries == wanted
    tagged = {
        row["physicalOffset"]: row["tagsCode"]
        for row in direct_rows(stores[0], columns=["physicalOffset", "tagsCode"], delayLevels="1s 5s 10s")
    }
    assert {
        row["physicalOffset"]: row["tagsCode"] for row in direct_rows(stores[0], "consumequeue")
    } == tagged


def test_entries_of_the_key_index_are_rows_and_its_slots_are_not_read(
    spark: SparkSession, indexed: Path, tmp_path: Path
) -> None:
    table = read_store(spark, indexed, view="index", counters=str(tmp_path))
    # The index has each message under its unique key and its key.
    assert table.groupBy("physicalOffset").count().where("count = 2").count() == 4_000
    first = table.orderBy("file", "entry").limit(3).collect()
    assert [row.entry for row in first] == [1, 2, 3]
    assert all(row.slot == row.keyHash % 1_200 for row in first)
    assert [row.storeTimestamp.timestamp() for row in first[:2]] == [1_700_000_001.0] * 2
    assert read_counters(tmp_path).bytes_read < 8_000 * 20 + 2_000_000


def test_where_groups_stand_are_rows(spark: SparkSession, indexed: Path) -> None:
    found = read_store(spark, indexed, view="offsets").orderBy("topic", "queueId").collect()
    assert [tuple(row) for row in found] == [
        ("store", GROUP, "Gone", 3, 5, None, None, None),
        ("store", GROUP, "Often", 0, 1_500, 0, 2_000, 500),
        ("store", GROUP, "Often", 1, 7, 0, 2_000, 1_993),
        ("store", None, "a@b@c", 0, 1, None, None, None),
    ]


def test_damage_is_a_table_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    placed = write_log(tmp_path / "torn", [plain(bytes([number])) for number in range(5)], 4_096)
    with (tmp_path / "torn" / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(placed[1][0] + 88)
        file.write(b"x")
        file.seek(placed[-1][0] + len(placed[-1][1]))
        file.write(placed[0][1][:50])
    found = read_store(spark, tmp_path / "torn", view="damage").orderBy("start").collect()
    assert [(row.kind, row.start) for row in found] == [
        ("bad CRC", placed[1][0]),
        ("torn tail", placed[-1][0] + len(placed[-1][1])),
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"view": "messagez"}, f"unknown view 'messagez'; known: {', '.join(VIEWS)}"),
        ({"colour": "red"}, "unknown option 'colour'; known: view, path, paths, decompress, "),
        ({"columns": ["topic", "bodi"]}, "unknown column 'bodi' of the view messages; known: store, "),
        ({"view": "damage", "topic": "T"}, "option 'topic' does not apply to the view damage: filter"),
        ({"decompress": "yes"}, "option decompress: 'yes' is neither true nor false"),
        ({"batchRecords": "0"}, "option batchRecords: '0' is not a number of at least 1"),
        ({"delayLevels": "1s 5x"}, "option delayLevels: messageDelayLevel: '5x' is not a number"),
        ({"from": "yesterday"}, "'yesterday' is not a time: "),
        ({"queueId": "a"}, "option queueId: 'a' is not a list of numbers, as in 0,1"),
    ],
)
def test_unknown_names_are_reported_before_spark_starts(
    spark: SparkSession, stores: list[Path], arguments: dict[str, Any], line: str
) -> None:
    with pytest.raises(PipelineError) as caught:
        read_store(spark, stores, **arguments)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_errors_that_spark_wraps_end_with_one_clear_line(
    spark: SparkSession, stores: list[Path], tmp_path: Path
) -> None:
    reader = spark.read.format("rocketmq")
    with pytest.raises(AnalysisException) as caught:
        reader.load(str(tmp_path / "nothing"))
    assert (
        str(described(str(caught.value)))
        == f"there is no store at {tmp_path / 'nothing'}: the directory does not exist"
    )
    with pytest.raises(AnalysisException) as caught:
        reader.option("view", "all").load(str(stores[0]))
    assert str(described(str(caught.value))).startswith("unknown view 'all'; known: messages, ")
    table = spark.read.format("rocketmq").schema("topic int").load(str(stores[0]))
    with pytest.raises(PipelineError, match=r"^column 'topic' has type string, not int$"), in_one_line():
        table.collect()


def test_a_segment_that_is_removed_while_it_is_read_is_one_clear_line(tmp_path: Path) -> None:
    write_log(tmp_path / "store", [plain(bytes(500)) for _ in range(9)], 2_048)
    options = parse_options({"path": str(tmp_path / "store")})
    reader = LogRowReader(options, ["topic"])
    first = tmp_path / "store" / "commitlog" / f"{0:020d}"
    (part,) = reader.partitions()
    first.unlink()
    with pytest.raises(PipelineError) as caught:
        list(reader.read(part))
    assert str(caught.value) == f"the broker removed {first} during the query: start again"


def test_a_list_of_paths_may_be_given_as_json(spark: SparkSession, stores: list[Path]) -> None:
    paths = json.dumps([str(store) for store in stores])
    table = spark.read.format("rocketmq").option("paths", paths).option("topic", "Orders").load()
    assert sorted(row.store for row in table.select("store").distinct().collect()) == ["broker-a", "broker-b"]


def test_the_page_about_reading_explains_every_column_and_option() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pipeline" / "reading.md").read_text()
    for view in VIEWS.values():
        for name, column in view.items():
            assert f"| `{name}` | {column.type} | {column.meaning} |" in page
    for option in OPTIONS:
        assert f"`{option}`" in page or option in ("path", "paths")
