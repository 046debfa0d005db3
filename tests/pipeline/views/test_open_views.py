"""The views open_timers and in_flight say what the broker that wrote the store says."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from rewindmq.__main__ import main
from rewindmq.broker.store.layout.timer import SEAL_AT, UNIT_BYTES
from rewindmq.pipeline import PipelineError, read_table
from rewindmq.pipeline.schema import IN_FLIGHT, OPEN_TIMERS, VIEWS
from rewindmq.race.sim.world import EPOCH_MS
from tests.pipeline.direct import rows
from tests.pipeline.logs import LogWriter, random_store
from tests.pipeline.views.open_store import END, Facts, make_store, waiting_in_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMERS = ["topic", "queueId", "uniqueKey", "keys", "tag", "dueTimestampMs", "rolls", "recalled"]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return make_store(tmp_path_factory.mktemp("open"))


def timers(store: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of topic W by unique key."""
    found = [row for row in rows(store, "open_timers", TIMERS) if row["topic"] == "W"]
    assert len({row["uniqueKey"] for row in found}) == len(found)
    return {row["uniqueKey"]: row for row in found}


def in_flight(store: Path) -> list[dict[str, Any]]:
    columns = ["group", "topic", "queueId", "queueOffset", "popTimestampMs", "visibleTimestampMs"]
    return rows(store, "in_flight", columns)


def test_the_timers_of_a_stopped_broker_are_those_that_it_delivers_later(facts: Facts) -> None:
    found = timers(facts.closed)
    assert sorted(key for key, row in found.items() if not row["recalled"]) == sorted(facts.delivered_later)
    assert {key: row["recalled"] for key, row in found.items()} == {
        "w40": False, "w55": True, "w70": False, "fresh": False
    }  # fmt: skip
    assert found["w70"] == {
        "topic": "W",
        "queueId": 1,
        "uniqueKey": "w70",
        "keys": ["k", "w70"],
        "tag": "A",
        "dueTimestampMs": EPOCH_MS + 70_000,
        "rolls": 1,
        "recalled": False,
    }


def test_as_many_timers_wait_as_the_broker_counts(facts: Facts, tmp_path: Path) -> None:
    _, deletions = waiting_in_broker(copied(facts.closed, tmp_path))
    assert len(deletions) == 1
    assert len(rows(facts.closed, "open_timers")) - len(deletions) == facts.congestion


def test_what_is_in_flight_is_what_was_popped_and_comes_again(facts: Facts) -> None:
    """Acknowledged alone and in a batch, changed, and revived messages among them."""
    found = in_flight(facts.closed)
    bodies = {
        (row["topic"], row["queueId"], row["queueOffset"]): row["body"]
        for row in rows(facts.closed, columns=["topic", "queueId", "queueOffset", "body"])
    }
    named = [
        (
            bodies[row["topic"], row["queueId"], row["queueOffset"]],
            row["group"],
            row["popTimestampMs"],
            row["visibleTimestampMs"],
        )
        for row in found
    ]
    assert len(named) == len(facts.in_flight)
    assert set(named) == facts.in_flight
    assert Counter(body for body, *_ in named) == Counter(facts.revived_later)
    assert Counter((row["topic"], row["group"], row["queueId"]) for row in found) == facts.counted


def test_a_checkpoint_says_where_its_handles_point(facts: Facts) -> None:
    columns = ["queueOffset", "startOffset", "reviveQueueId", "popTimestamp", "popTimestampMs"]
    found = [row for row in rows(facts.closed, "in_flight", [*columns, "group"]) if row["group"] == "H"]
    assert [row["queueOffset"] for row in found] == [0, 1, 2]
    assert {row["startOffset"] for row in found} == {0}
    assert len({row["reviveQueueId"] for row in found}) == 1
    assert {row["popTimestamp"].timestamp() * 1_000 for row in found} == {found[0]["popTimestampMs"]}


def cut(path: Path, at: int) -> None:
    path.write_bytes(path.read_bytes()[:at])


def overwrite(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def newest_unit(store: Path) -> tuple[Path, int]:
    """Return the place of the last unit that the checkpoint counts."""
    end = int.from_bytes((store / "config" / "timercheck").read_bytes()[8:16], "big")
    file = max(path for path in (store / "timerlog").iterdir() if int(path.name) < end)
    return file, end - UNIT_BYTES - int(file.name)


def unseal(store: Path, end: int | None = None) -> None:
    """Make the checkpoint one that RocketMQ wrote; ``end``: its end of the timer log."""
    checkpoint = store / "config" / "timercheck"
    overwrite(checkpoint, SEAL_AT, bytes(8))
    if end is not None:
        overwrite(checkpoint, 8, end.to_bytes(8, "big"))


def remove_all(store: Path) -> None:
    for path in (store / "config" / "timercheck", store / "timerwheel"):
        path.unlink()
    shutil.rmtree(store / "timerlog")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "none": lambda store: None,
    "RocketMQ wrote it": unseal,
    "RocketMQ wrote units behind its checkpoint": lambda store: unseal(store, 3 * UNIT_BYTES),
    "no checkpoint": lambda store: (store / "config" / "timercheck").unlink(),
    "torn checkpoint": lambda store: cut(store / "config" / "timercheck", 20),
    "no wheel": lambda store: (store / "timerwheel").unlink(),
    "torn wheel": lambda store: cut(store / "timerwheel", 700),
    "no timer log": lambda store: shutil.rmtree(store / "timerlog"),
    "a file of the timer log is missing": lambda store: sorted((store / "timerlog").iterdir())[1].unlink(),
    "torn timer log": lambda store: cut(max((store / "timerlog").iterdir()), 10),
    "no timer files": remove_all,
}


@pytest.mark.parametrize(
    ("damage", "moment"),
    [("none", 1.0), ("none", 6.3), ("none", END), *((damage, 29.0) for damage in DAMAGES)],
)
def test_the_timers_are_those_of_a_broker_that_starts_on_the_files(
    facts: Facts, tmp_path: Path, damage: str, moment: float
) -> None:
    """The files of a killed broker, and missing or torn ones."""
    store = copied(facts.closed if moment == END else facts.live[moment], tmp_path)
    DAMAGES[damage](store)
    found = [row["physicalOffset"] for row in rows(store, "open_timers", ["physicalOffset"])]
    known, deletions = waiting_in_broker(store)
    assert len(set(found)) == len(found)
    assert set(found) == known - deletions


def test_a_message_in_flight_is_listed_once_when_its_checkpoint_is_read_twice(
    facts: Facts, tmp_path: Path
) -> None:
    """Without timer files, a broker delivers checkpoints and acks again; so do those that are done come."""
    store = copied(facts.closed, tmp_path)
    before = {tuple(row.values()) for row in in_flight(store)}
    DAMAGES["no timer files"](store)
    after = [tuple(row.values()) for row in in_flight(store)]
    assert len(set(after)) == len(after)
    assert before <= set(after)


def test_a_torn_commit_log_has_the_rows_that_are_left(facts: Facts, tmp_path: Path) -> None:
    store = copied(facts.closed, tmp_path)
    before = rows(store, "open_timers", ["physicalOffset", "storeSize"])
    last = max(before, key=lambda row: row["physicalOffset"])
    position = last["physicalOffset"]
    segment = max(path for path in (store / "commitlog").iterdir() if int(path.name) <= position)
    overwrite(segment, position - int(segment.name), bytes(4_096))
    assert rows(store, "open_timers", ["physicalOffset", "storeSize"]) == [
        row for row in before if row["physicalOffset"] < position
    ]
    in_flight(store)


def test_garbage_in_the_timer_log_gives_no_rows_of_other_messages(facts: Facts, tmp_path: Path) -> None:
    store = copied(facts.closed, tmp_path)
    known = {row["physicalOffset"] for row in rows(store, "open_timers", ["physicalOffset"])}
    file, at = newest_unit(store)
    overwrite(file, at + 28, (1 << 40).to_bytes(8, "big"))
    found = {row["physicalOffset"] for row in rows(store, "open_timers", ["physicalOffset"])}
    assert found < known
    overwrite(file, at + 28, (5).to_bytes(8, "big"))
    assert {row["physicalOffset"] for row in rows(store, "open_timers", ["physicalOffset"])} == found


def test_a_pipe_in_the_place_of_a_timer_file_is_one_clear_line(facts: Facts, tmp_path: Path) -> None:
    store = copied(facts.closed, tmp_path)
    place = store / "config" / "timercheck"
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(PipelineError, match=f"cannot read {place}: is no regular file"):
        rows(store, "open_timers")


def test_a_store_without_timers_has_no_rows(tmp_path: Path) -> None:
    random_store(tmp_path / "store", 3)
    assert rows(tmp_path / "store", "open_timers") == rows(tmp_path / "store", "in_flight") == []


REVIVE = "rmq_sys_REVIVE_LOG_C"
POINT = {"t": "T", "c": "G", "q": 1, "so": 10, "pt": EPOCH_MS, "it": 60_000, "bn": "b", "n": 3}
MOST = (1 << 63) - 1


def put_record(writer: LogWriter, tag: str, record: object, *, queue_id: int = 0, wait: str = "") -> None:
    """Write a record into the revive topic, or as a timer message that is due at ``wait``."""
    body = record if isinstance(record, bytes) else json.dumps(record).encode()
    if wait:
        properties = {"TIMER_OUT_MS": wait, "REAL_TOPIC": REVIVE, "REAL_QID": str(queue_id)}
        writer.put("rmq_sys_wheel_timer", body=body, tag=tag, properties=properties)
    else:
        writer.put(REVIVE, queue_id, body, tag=tag)


def test_acks_count_wherever_they_are(tmp_path: Path) -> None:
    """Before the checkpoint, in the other place, of an old broker, and for a checkpoint that was put back."""
    writer = LogWriter(tmp_path)
    ack = {name: POINT[name] for name in ("t", "c", "q", "so", "pt", "bn")}
    put_record(writer, "ack", ack | {"ao": 10})
    put_record(writer, "ck", POINT | {"n": 5, "d": [0, 1, 2, 7, 8]}, wait=str(EPOCH_MS))
    put_record(writer, "bAck", ack | {"ao": -1, "aol": [11, 13]}, wait=str(EPOCH_MS))
    old = {"ackOffset": 17, "startOffset": 10, "consumerGroup": "G", "topic": "T", "queueId": 1}
    put_record(writer, "ack", old | {"popTime": EPOCH_MS})
    put_record(writer, "ck", POINT | {"n": 5, "d": [0, 1, 2, 7, 8], "rp": "1"}, wait=str(EPOCH_MS))
    put_record(writer, "ack", ack | {"ao": 18, "c": "H"})
    writer.finish()
    assert [row["queueOffset"] for row in rows(tmp_path, "in_flight")] == [12, 18]


def test_records_that_the_broker_skips_are_no_rows(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    garbage = [
        b"",
        b"\xff{",
        b"[1]",
        POINT | {"n": 0},
        POINT | {"n": -1},
        POINT | {"n": 1_000},
        POINT | {"t": None},
        POINT | {"c": None},
        POINT | {"d": [1]},
        POINT | {"so": MOST, "pt": MOST, "it": MOST, "d": [1, 2, 3]},
    ]
    for wait in ("", str(EPOCH_MS)):
        for record in garbage:
            put_record(writer, "ck", record, wait=wait)
            put_record(writer, "bAck", record, wait=wait)
        put_record(writer, "other", POINT, wait=wait)
    for out_ms in ("", "x", "-1", "9" * 18, "\u0661"):
        put_record(writer, "ck", POINT, wait=out_ms or " ")
    put_record(writer, "ck", POINT, queue_id=1 << 40, wait="1")
    put_record(writer, "ck", POINT | {"q": 2, "pt": MOST, "it": -1, "n": 1})
    put_record(writer, "ck", POINT | {"q": 3, "pt": -MOST, "it": -MOST, "n": 1})
    writer.finish()
    found = rows(tmp_path, "in_flight", [*IN_FLIGHT])
    assert [(row["queueId"], row["queueOffset"]) for row in found] == [(2, 10), (3, 10)]
    for row in rows(tmp_path, "open_timers", [*OPEN_TIMERS]):
        assert row["topic"] == REVIVE
        assert row["queueId"] in (0, None)


def test_show_prints_the_views(facts: Facts, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["pipeline", "show", str(facts.closed), "--view"]
    assert main([*asked, "open_timers", "--topic", "W"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["store", "topic", "queueId", "uniqueKey"]
    assert [line.split()[3] for line in lines[1:]] == ["w40", "w55", "w70", "fresh"]
    assert main([*asked, "in_flight", "--json", "--limit", "0"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert Counter((row["topic"], row["group"], row["queueId"]) for row in found) == facts.counted
    assert main([*asked, "in_flight", "--count", "--topic", "T"]) == 0
    assert int(capsys.readouterr().out) == sum(row["topic"] == "T" for row in found)


LATEST = "SELECT topic, max(dueTimestamp) AS latest FROM {timers} WHERE NOT recalled GROUP BY topic"
OLDEST = """
SELECT `group`, count(*) AS messages, min(i.popTimestamp) AS since, count(m.storeSize) AS retained
FROM {in_flight} i LEFT JOIN {messages} m
  ON m.topic = i.topic AND m.queueId = i.queueId AND m.queueOffset = i.queueOffset
GROUP BY `group` ORDER BY `group`
"""


def test_duckdb_answers_questions_about_the_views(facts: Facts) -> None:
    tables = {
        "timers": read_table(facts.closed, view="open_timers"),
        "in_flight": read_table([facts.closed], view="in_flight"),
        "messages": read_table(facts.closed, columns=["topic", "queueId", "queueOffset", "storeSize"]),
    }
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        names = {name: name for name in tables}
        latest = database.sql(LATEST.format(**names)).to_arrow_table().to_pylist()
        oldest = database.sql(OLDEST.format(**names).replace("`", '"')).to_arrow_table().to_pylist()
    assert {row["topic"]: row["latest"].timestamp() for row in latest}["W"] == EPOCH_MS / 1_000 + 70
    assert [(row["group"], row["messages"], row["retained"]) for row in oldest] == [
        ("G", 19, 19),
        ("H", 3, 3),
    ]
    assert oldest[1]["since"] - oldest[0]["since"] == timedelta(seconds=11)


def test_a_table_without_rows_has_the_columns_of_its_view(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    for view, columns in VIEWS.items():
        table = read_table(tmp_path, view=view)
        assert (table.num_rows, table.column_names) == (
            0,
            [name for name, column in columns.items() if column.is_default],
        )


def test_spark_reads_the_same_rows(spark: SparkSession, facts: Facts) -> None:
    from rewindmq.pipeline import read_store

    frames = {}
    for view in ("open_timers", "in_flight"):
        for columns in (None, list(VIEWS[view])):
            frames[view] = read_store(spark, facts.closed, view=view, columns=columns)
            found = sorted(map(repr, frames[view].toArrow().to_pylist()))
            assert found == sorted(
                map(repr, read_table(facts.closed, view=view, columns=columns).to_pylist())
            )
            assert found
    latest = spark.sql(LATEST, timers=frames["open_timers"]).collect()
    assert {row.topic: row.latest.timestamp() for row in latest}["W"] == EPOCH_MS / 1_000 + 70
    messages = read_store(spark, facts.closed, columns=["topic", "queueId", "queueOffset", "storeSize"])
    oldest = spark.sql(OLDEST, in_flight=frames["in_flight"], messages=messages).collect()
    assert [(row.group, row.messages, row.retained) for row in oldest] == [("G", 19, 19), ("H", 3, 3)]


def copied(store: Path, folder: Path) -> Path:
    return Path(shutil.copytree(store, folder / "store"))
