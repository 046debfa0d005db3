"""Slave, broker, pipeline and command line touch no file outside their folders, whatever names say.

Each program runs in a process of its own with hostile input. ``tests.support.touched_files`` lists what it
touches.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import pytest

from rewindmq.broker.store import MessageStore, StoreConfig
from rewindmq.protocol.message.record import MAGIC_V2
from tests.support.touched_files import Touch, touched_files
from tests.support.unused_topics import remove_unused_topics

# From ``store/consumequeue``, from ``store/compaction/compactionLog`` and from an output, these lead outside.
NAMES = [
    "../../x", "../../../x", "../../../../x", "..", ".", "/x", "x/../../../../x", "a/b", "x\0y",
    "T/0/../../../..", "../../outside", "../../../outside", "../../../../outside", "\n", "x" * 300,
]  # fmt: skip
QUEUE_IDS = (0, -1, 7, 0x7FFF_FFFF, -0x8000_0000)


def test_a_slave_touches_its_store_only(tmp_path: Path) -> None:
    check(tmp_path, "follow_a_hostile_master", allowed=("store",))


def test_a_broker_of_a_hostile_store_touches_its_store_only(tmp_path: Path) -> None:
    check(tmp_path, "open_a_hostile_store", allowed=("store",))


@pytest.mark.slow
def test_the_views_of_a_hostile_store_change_nothing_and_read_nothing_else(tmp_path: Path) -> None:
    touched = check(tmp_path, "read_a_hostile_store", allowed=("store",))
    store = str((tmp_path / "deep" / "er" / "store").resolve())
    assert not [touch for touch in touched if touch.is_change and touch.path.startswith(store)]


@pytest.mark.slow
def test_the_pipelines_writers_touch_their_output_only(tmp_path: Path) -> None:
    check(tmp_path, "write_outputs", allowed=("out",))


def test_the_files_of_consumerStatus_lie_in_its_folder(tmp_path: Path) -> None:
    touched = check(tmp_path, "write_running_info", allowed=("out",))
    assert sum(touch.event == "open" and touch.is_change for touch in touched) >= len(NAMES)


def check(folder: Path, program: str, allowed: tuple[str, ...]) -> list[Touch]:
    """Run a program below; it may change what it is allowed to, and must not even read anything else here."""
    outside = folder / "outside" / "0" / f"{0:020d}"
    outside.parent.mkdir(parents=True)
    outside.write_text("precious")
    place = folder / "deep" / "er"
    place.mkdir(parents=True)
    if program in ("open_a_hostile_store", "read_a_hostile_store"):
        make_hostile_store(place / "store")
    touched = touched_files(__name__, program, place)
    homes = [(place / name).resolve() for name in allowed]
    changed = [
        touch for touch in touched if touch.is_change and not touch.path.startswith(("/dev/", "/proc/"))
    ]
    assert not [touch for touch in changed if not _is_below(touch.path, homes)]
    here = [touch for touch in touched if Path(touch.path).is_relative_to(folder.resolve())]
    assert here, "the program touched nothing at all"
    # A store makes its name in the folder above durable, so it opens that folder.
    above = str(place.resolve())
    assert not [touch for touch in here if touch.path != above and not _is_below(touch.path, homes)]
    assert outside.read_text() == "precious"
    assert {path.name for path in folder.iterdir()} == {"outside", "deep"}
    return touched


def _is_below(path: str, homes: list[Path]) -> bool:
    return any(Path(path).is_relative_to(home) for home in homes)


# Hostile input.


def record(topic: str, queue_id: int, queue_offset: int, position: int) -> bytes:
    """Return a record whose lengths and CRC are right."""
    name, body, properties = topic.encode(), b"evil", b"KEYS\x01k\x02TAGS\x01a\x02"
    size = 88 + len(body) + 2 + len(name) + 2 + len(properties)
    fixed = struct.pack(
        ">iIiiiqqiq8sq8siqi",
        *(
            size,
            MAGIC_V2,
            crc32(body) & 0x7FFFFFFF,
            queue_id,
            0,
            queue_offset,
            position,
            0,
            1_700_000_000_000,
        ),
        *(bytes(8), 1_700_000_000_000, bytes(8), 0, 0, len(body)),
    )
    return (
        fixed + body + struct.pack(">h", len(name)) + name + struct.pack(">h", len(properties)) + properties
    )


def hostile_records(position: int) -> Iterator[bytes]:
    for name in NAMES:
        for queue_id in QUEUE_IDS:
            data = record(name, queue_id, 0, position)
            yield data
            position += len(data)


def make_hostile_store(store: Path) -> None:
    """Write a log of hostile records after a valid one, and hostile tables."""
    log = record("T", 0, 0, 0)
    log += b"".join(hostile_records(len(log)))
    (store / "commitlog").mkdir(parents=True)
    (store / "commitlog" / f"{0:020d}").write_bytes(log.ljust(1 << 17, b"\0"))
    (store / "abort").touch()
    tables = {
        "consumerOffset.json": {"offsetTable": {f"{name}@G": {"0": 1, "-1": 1, "7": 9} for name in NAMES}},
        "topics.json": {
            "topicConfigTable": {
                name: {"topicName": name, "attributes": {"+cleanup.policy": "COMPACTION"}} for name in NAMES
            }
        },
        "subscriptionGroup.json": {"subscriptionGroupTable": {name: {"groupName": name} for name in NAMES}},
        "delayOffset.json": {"offsetTable": {"1": 1, "-5": 3}},
    }
    for name, table in tables.items():
        (store / "config").mkdir(exist_ok=True)
        (store / "config" / name).write_text(json.dumps(table))
    (store / "compaction").mkdir()
    positions = {f"{name}_0": 5 for name in NAMES}
    (store / "compaction" / "position-checkpoint").write_text(json.dumps({"queueOffsetMap": positions}))


# The programs; each is given the folder of ``store`` and ``out``.


def follow_a_hostile_master(place: Path) -> None:
    from rewindmq.broker.ha.checked_tables import checked_topics
    from rewindmq.broker.store.errors import StoreError
    from rewindmq.protocol.body.registration import TopicConfig, TopicConfigSerializeWrapper

    store = _store(place)
    store.become_replica()
    store.append_replica(0, record("T", 0, 0, 0))
    end = store.max_commit_log_offset
    for name in NAMES:
        for queue_id in QUEUE_IDS:
            store.restart_replica()
            with pytest.raises(StoreError):
                store.append_replica(end, record(name, queue_id, 0, end))
        wrapper = TopicConfigSerializeWrapper({name: TopicConfig(name)})
        assert not checked_topics(wrapper).topic_config_table
    assert store.max_commit_log_offset == end
    store.flush_all()
    store.close()


def open_a_hostile_store(place: Path) -> None:
    store = _store(place)
    store.set_compaction_topics(["T", *NAMES])
    store.flush_all()
    for name in NAMES:
        for queue_id in QUEUE_IDS:
            store.max_offset(name, queue_id)
            store.get_message(name, queue_id, 0, 32, None)
    remove_unused_topics(store.cleaner, {"T"})
    store.close()


def _store(place: Path) -> MessageStore:
    config = StoreConfig(mapped_file_size_commit_log=1 << 17, mapped_file_size_consume_queue=6_000)
    store = MessageStore(place / "store", config, lambda: 1_700_000_000_000)
    store.open()
    return store


def read_a_hostile_store(place: Path) -> None:
    from rewindmq.pipeline.snapshot.snapshot import take_snapshot
    from tests.pipeline.direct import READERS, rows

    for view in READERS:
        rows(place / "store", view)
    snapshot = take_snapshot(place / "store")
    for name in NAMES:
        for queue_id in QUEUE_IDS:
            snapshot.queue(name, queue_id)


def write_outputs(place: Path) -> None:
    import pyarrow as pa

    from rewindmq.pipeline.compact.layout import Stream
    from rewindmq.pipeline.compact.writer import cq_path, log_path
    from rewindmq.pipeline.errors import PipelineError
    from rewindmq.pipeline.files import LocalFiles
    from rewindmq.pipeline.index.queue_pieces import QUEUE_ENTRY_COLUMNS, pack
    from rewindmq.pipeline.index.queues import QueueFilesPlan, _write_queues

    files, out = LocalFiles(), str(place / "out")
    for make in (log_path, cq_path):
        for name in NAMES:
            for queue_id in QUEUE_IDS:
                with suppress(PipelineError):
                    files.create(make(out, Stream(name, queue_id), 0)).close()
    columns = dict.fromkeys(QUEUE_ENTRY_COLUMNS, 0)
    entries = [{**columns, "topic": name, "queueId": queue} for name in ["T", *NAMES] for queue in QUEUE_IDS]
    found = _write_queues(
        QueueFilesPlan(files, out, file_bytes=6_000), iter([pack(pa.RecordBatch.from_pylist(entries))])
    )
    # "\n" can be a folder, and so can "T"; each has three queues with an id.
    assert found["queues"] == 6


def write_running_info(place: Path) -> None:
    from rewindmq.client.admin.commands import consumer_status

    for name in [*NAMES, "", "\ud800", "10.0.0.1@1"]:
        consumer_status._write(place / "out", name, ["line"])
