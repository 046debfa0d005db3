"""Compaction of random logs, compared with the plain reference; and each rule on a small log."""

from __future__ import annotations

import json
import shutil
import stat
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from rewindmq.broker.store import MessageStore, StoreConfig
from rewindmq.pipeline.compact import scan
from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format, Keyless, Scope
from rewindmq.pipeline.errors import PipelineError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_record
from tests.pipeline.compact.compact_reference import (
    compaction_queues,
    content,
    expected_queues,
    expected_store,
    fingerprint,
    store_messages,
)
from tests.pipeline.logs import LogWriter, random_store
from tests.pipeline.reference import consumer_offsets, delay_offsets, new_offset, read_log

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

TOPICS = ("Orders", "Prices")
# 46 * 11, and room for some ten records.
SMALL = CompactOptions(log_file_bytes=4_096, cq_file_bytes=506)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks for logs of a few KiB."""
    monkeypatch.setattr(scan, "SPLIT_BYTES", 10_000)


def check_queues(store: Path, root: Path, options: CompactOptions, topics: tuple[str, ...] = TOPICS) -> None:
    """Check that the compaction store has the messages of the reference, with the same queue offsets."""
    wanted = expected_queues(store, topics, options)
    found = compaction_queues(root)
    assert {queue: [m.queue_offset for m in messages] for queue, messages in found.items()} == {
        queue: [m.queue_offset for m in messages] for queue, messages in wanted.items()
    }
    for queue, messages in wanted.items():
        assert [content(m) for m in found[queue]] == [content(m) for m in messages]


def check_store(store: Path, root: Path, options: CompactOptions, topics: tuple[str, ...] = TOPICS) -> None:
    """Check that the new store has the messages of the reference, renumbered, and the groups' places."""
    wanted = expected_store(store, topics, options)
    found = store_messages(root)
    assert [content(m) for m in found] == [content(m) for m in wanted]
    numbers: dict[tuple[str, int], list[int]] = defaultdict(list)
    for old, new in zip(wanted, found, strict=True):
        assert new.queue_offset == len(numbers[old.topic, old.queue_id])
        numbers[old.topic, old.queue_id].append(old.queue_offset)
    before = consumer_offsets(store)
    assert consumer_offsets(root) == {
        name: {
            queue: new_offset(offset, numbers[name.partition("@")[0], int(queue)])
            for queue, offset in queues.items()
        }
        for name, queues in before.items()
    }
    assert set(delay_offsets(root).values()) <= {0}


@pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_a_compaction_store_holds_what_the_reference_keeps(runner: Runner, tmp_path: Path, seed: int) -> None:
    store = tmp_path / "store"
    random_store(store, seed)
    before = fingerprint(store)
    scope = Scope.TOPIC if seed else Scope.QUEUE
    options = replace(SMALL, scope=scope, tombstone_grace_ms=20_000 * seed)
    summary = compact(runner, store, tmp_path / "out", options)
    check_queues(store, tmp_path / "out" / "current", options)
    assert fingerprint(store) == before
    keyless = sum(m.topic in TOPICS and not m.keys for m in read_log(store))
    assert summary.keyless_dropped == keyless > 0
    assert summary.damage_count == (1 if seed % 3 == 0 else 0)


@pytest.mark.parametrize("seed", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_a_fresh_store_holds_what_the_reference_keeps(runner: Runner, tmp_path: Path, seed: int) -> None:
    store, root = tmp_path / "store", tmp_path / "out" / "current"
    random_store(store, seed)
    options = CompactOptions(
        format=Format.STORE,
        scope=Scope.TOPIC if seed == 1 else Scope.QUEUE,
        tombstone_grace_ms=20_000 if seed == 1 else 0,
        keyless=Keyless.DROP if seed == 1 else Keyless.KEEP,
        segment_bytes=8_192,
    )
    compact(runner, store, tmp_path / "out", options)
    check_store(store, root, options)
    check_opens(root)
    check_private(tmp_path / "out")


def check_private(root: Path) -> None:
    """Check that only the owner may read the files, also those that Spark wrote."""
    paths = [path for path in (root, *root.rglob("*")) if not path.is_symlink()]
    assert {stat.filemode(path.stat().st_mode) for path in paths} == {"drwx------", "-rw-------"}


def check_opens(root: Path) -> None:
    """A broker's store opens it, with and without consume queues, and has every message under its offset."""
    wanted = [(m.topic, m.queue_id, m.queue_offset, content(m)) for m in read_log(root)]
    for _ in range(2):
        copy = root.parent.parent / "opened"
        shutil.copytree(root, copy)
        assert _served(copy, wanted) == wanted
        shutil.rmtree(copy / "consumequeue")
        assert _served(copy, wanted) == wanted
        shutil.rmtree(copy)


def _served(
    root: Path, wanted: list[tuple[str, int, int, tuple[object, ...]]]
) -> list[tuple[str, int, int, tuple[object, ...]]]:
    config = StoreConfig(mapped_file_size_commit_log=8_192, mapped_file_size_consume_queue=6_000)
    store = MessageStore(root, config, lambda: 0)
    store.open()
    try:
        return [
            (topic, queue, offset, content(_get(store, topic, queue, offset)))
            for topic, queue, offset, _ in wanted
        ]
    finally:
        store.close()


def _get(store: MessageStore, topic: str, queue_id: int, offset: int) -> MessageExt:
    result = store.get_message(topic, queue_id, offset, 1, None)
    message = decode_record(result.body)
    assert message.queue_offset == offset
    return message


def write_orders(store: Path) -> None:
    """One topic of two queues: keys written over and deleted, and one message without a key."""
    writer = LogWriter(store)
    for number in range(40):
        writer.now += 1_000
        writer.put("Orders", number % 2, b"value-%d" % number, keys=f"key-{number % 6}")
    writer.put("Orders", 0, b"no key")
    writer.put("Orders", 1, b"", keys="key-1")
    writer.finish()


def cut_copy(store: Path, copy: Path, count: int) -> None:
    """The store as it was when its log had so many records."""
    shutil.copytree(store, copy)
    shutil.rmtree(copy / "consumequeue")
    end = read_log(store)[count].commit_log_offset
    for segment in (copy / "commitlog").iterdir():
        size = segment.stat().st_size
        kept = min(max(end - int(segment.name), 0), size)
        if kept == 0 and int(segment.name):
            segment.unlink()
        else:
            data = segment.read_bytes()[:kept]
            segment.write_bytes(data + bytes(size - len(data)))


def grow(store: Path, whole: Path) -> None:
    """Replace a store by another store that begins with the same log."""
    shutil.rmtree(store)
    shutil.copytree(whole, store)


@pytest.mark.slow
@pytest.mark.parametrize("format_", list(Format))
def test_a_run_on_its_own_output_adds_what_is_new(runner: Runner, tmp_path: Path, format_: Format) -> None:
    """The second run reads only what is new, though the source lacks most of the rest by then; the result
    is that of one run over everything."""
    whole, store, out = tmp_path / "whole", tmp_path / "store", tmp_path / "out"
    random_store(whole, 2, count=160)
    count = len(read_log(whole))
    cut_copy(whole, store, count - 40)
    options = replace(SMALL, format=format_, scope=Scope.TOPIC, tombstone_grace_ms=9_000, segment_bytes=8_192)
    first = compact(runner, store, out, options)
    assert (first.is_new, first.generation, first.messages_read) == (True, 1, count - 40)
    assert not compact(runner, store, out, options).is_new
    grow(store, whole)
    segments = sorted((store / "commitlog").iterdir())
    last_read = read_log(whole)[count - 41].commit_log_offset
    for segment in [item for item in segments if int(item.name) + item.stat().st_size <= last_read]:
        segment.unlink()
    second = compact(runner, store, out, options)
    assert (second.is_new, second.generation, second.messages_read) == (True, 2, 40)
    check = check_queues if format_ is Format.COMPACTION else check_store
    check(whole, out / "current", options)
    assert [item.name for item in sorted(out.iterdir())] == ["current", "generation-2", "manifest.json"]


@pytest.mark.slow
def test_files_that_stay_as_they_are_are_linked(runner: Runner, tmp_path: Path) -> None:
    """Only the last file of a log grows when all keys are new."""
    store, out = tmp_path / "store", tmp_path / "out"
    writer = LogWriter(tmp_path / "whole")
    for number in range(60):
        writer.put("Orders", 0, bytes(100), keys=f"key-{number}")
    writer.finish()
    cut_copy(tmp_path / "whole", store, 50)
    options = SMALL
    first = compact(runner, store, out, options)
    grow(store, tmp_path / "whole")
    second = compact(runner, store, out, options)
    assert second.files_linked == first.files_written - 1 > 1
    check_queues(store, out / "current", options)


@pytest.mark.slow
def test_an_output_that_a_broker_changed_is_rebuilt_from_the_source(runner: Runner, tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    write_orders(store)
    options = SMALL
    compact(runner, store, out, options)
    (file,) = (out / "current/compaction/compactionLog/Orders/0").iterdir()
    with file.open("r+b") as log:
        log.seek(3_900)
        log.write(b"appended")
    again = compact(runner, store, out, options)
    assert (again.generation, again.messages_read) == (2, 42)
    check_queues(store, out / "current", options)
    with file.open("r+b") as log:
        log.write(b"spoiled")
    segment = next((store / "commitlog").iterdir())
    segment.rename(segment.with_name(f"{65_536:020d}"))
    with pytest.raises(PipelineError, match="the part between was deleted"):
        compact(runner, store, out, options)


class Stopped(BaseException):
    """Ends a run in the middle."""


@pytest.mark.slow
@pytest.mark.parametrize("format_", list(Format))
def test_an_interrupted_run_is_taken_up_where_it_was(runner: Runner, tmp_path: Path, format_: Format) -> None:
    """Stopped at the beginning of each step in turn; no step is done twice, and what is published is old or
    new throughout."""
    store, out, whole = tmp_path / "store", tmp_path / "out", tmp_path / "whole"
    random_store(whole, 4)
    cut_copy(whole, store, 100)
    options = replace(SMALL, format=format_, segment_bytes=8_192)
    compact(runner, store, out, options)
    before = fingerprint(out / "current")
    grow(store, whole)
    told: list[str] = []

    def stop_at_a_new_step(text: str) -> None:
        if text not in told:
            told.append(text)
            raise Stopped

    for _ in range(6):
        with pytest.raises(Stopped):
            compact(runner, store, out, options, stop_at_a_new_step)
        assert fingerprint(out / "current") == before
    steps: list[str] = []
    compact(runner, store, out, options, steps.append)
    assert (len(set(told)), steps) == (6, ["publishing"])
    check = check_queues if format_ is Format.COMPACTION else check_store
    check(store, out / "current", options)


@pytest.mark.slow
def test_several_stores_are_compacted_into_folders_of_one_output(runner: Runner, tmp_path: Path) -> None:
    stores = [tmp_path / "broker-a", tmp_path / "broker-b"]
    write_orders(stores[0])
    random_store(stores[1], 5, count=60)
    options = replace(SMALL, topics=("Orders",))
    summary = compact(runner, stores, tmp_path / "out", options)
    for store in stores:
        check_queues(store, tmp_path / "out" / "current" / store.name, options, ("Orders",))
    (orders,) = summary.topics
    assert orders.read == sum(m.topic == "Orders" for store in stores for m in read_log(store))
    with pytest.raises(PipelineError, match="was made from"):
        compact(runner, stores[0], tmp_path / "out", options)


def test_every_message_is_accounted_for(runner: Runner, tmp_path: Path) -> None:
    """Each message read is kept, superseded, deleted or without a key; a damaged one is only reported."""
    store = tmp_path / "store"
    write_orders(store)
    damaged = read_log(store)[38]
    segment = next((store / "commitlog").iterdir())
    data = bytearray(segment.read_bytes())
    data[damaged.commit_log_offset + 88] ^= 1
    segment.write_bytes(data)
    summary = compact(runner, store, tmp_path / "out", SMALL)
    (orders,) = summary.topics
    # Even keys are in queue 0; in queue 1 key-1 was deleted, and that is its newest message.
    assert (orders.read, orders.kept, orders.superseded) == (41, 6, 34)
    assert (orders.keyless_dropped, orders.tombstones_dropped, orders.ends_kept) == (1, 1, 1)
    (place,) = summary.damage
    assert (place.kind, place.start) == ("bad CRC", damaged.commit_log_offset)
    queues = compaction_queues(tmp_path / "out" / "current")
    values = [m.stored_body for m in queues["Orders", 0]]
    # The newest intact message of key-2 replaces the damaged message.
    assert values == [b"value-32", b"value-34", b"value-36"]
    positions = json.loads((tmp_path / "out/current/compaction/position-checkpoint").read_text())
    assert positions == {"queueOffsetMap": {"Orders_0": 20, "Orders_1": 20}}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"topics": ("Nothing",)}, "unknown topic Nothing; known: Orders"),
        ({"topics": ("%RETRY%G",)}, "is a system topic"),
        ({"tombstone_grace_ms": -1}, "is negative"),
        ({"log_file_bytes": 100}, "must be 4096 to"),
        ({"cq_file_bytes": 47}, "the minimum is 92"),
    ],
)
def test_impossible_options_are_refused_before_spark_starts(
    tmp_path: Path, change: dict[str, object], text: str
) -> None:
    from rewindmq.pipeline.compact.job import prepare

    write_orders(tmp_path / "store")
    with pytest.raises(PipelineError, match=text):
        prepare(tmp_path / "store", tmp_path / "out", replace(CompactOptions(), **change))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_other_options_need_another_output(runner: Runner, tmp_path: Path) -> None:
    write_orders(tmp_path / "store")
    compact(runner, tmp_path / "store", tmp_path / "out", SMALL)
    with pytest.raises(PipelineError, match="was made with scope queue, not topic"):
        compact(runner, tmp_path / "store", tmp_path / "out", replace(SMALL, scope=Scope.TOPIC))


@pytest.mark.slow
def test_a_message_larger_than_a_file_is_reported(runner: Runner, tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "store")
    writer.put("Orders", 0, bytes(5_000), keys="k")
    writer.finish()
    with pytest.raises(PipelineError, match="does not fit into a file of 4096"):
        compact(runner, tmp_path / "store", tmp_path / "out", SMALL)


@pytest.mark.slow
def test_a_topic_that_names_a_path_writes_nothing_outside_the_output(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "x" / "0").mkdir(parents=True)
    victim = tmp_path / "x" / "0" / f"{0:020d}"
    victim.write_text("precious")
    writer = LogWriter(tmp_path / "store")
    writer.put("ABOVE-IT-X", 0, b"evil", keys="k")
    writer.finish()
    # No broker stores such a name; a record's checksum covers its body only.
    (segment,) = (tmp_path / "store" / "commitlog").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b"ABOVE-IT-X", b"../../../x"))
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "out")}
    with pytest.raises(PipelineError, match="cannot be a folder"):
        compact(runner, tmp_path / "store", tmp_path / "out", SMALL)
    assert victim.read_text() == "precious"
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "out")} == before
