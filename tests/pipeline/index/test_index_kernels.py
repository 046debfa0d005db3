"""The parts of the index job that need no Spark, against plain Python and against the broker's own code."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.layout.index import index_keys, key_hash
from rewindmq.pipeline.decode.property_columns import split_keys
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import ArrowFiles, LocalFiles
from rewindmq.pipeline.index import key_index
from rewindmq.pipeline.index.index_plan import plan_index_files, previous_index
from rewindmq.pipeline.index.key_hashes import entry_hashes
from rewindmq.pipeline.index.key_index import EntryRun, IndexFilePlan, name_after, write_index_file
from rewindmq.pipeline.index.options import IndexOptions
from rewindmq.pipeline.index.queue_files import QueueWriter
from rewindmq.pipeline.index.queue_pieces import QUEUE_ENTRY, TIME, pack
from rewindmq.pipeline.index.scan import ENTRY
from rewindmq.protocol.text import java_hash
from tests.pipeline.index.index_reference import files_below, index_files

TEXTS = st.one_of(st.none(), st.text(alphabet="abAZ019#_é标😀", min_size=1, max_size=12))
KEYS = st.one_of(st.none(), st.text(alphabet="aZ 标 ", max_size=10), st.just("polygenelubricants"))


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(["TopicA", "标签", "%RETRY%g"]), TEXTS, KEYS), min_size=1, max_size=30)
)
def test_hashes_of_many_messages_equal_those_of_a_broker(
    rows: list[tuple[str, str | None, str | None]],
) -> None:
    topics, unique, keys = (pa.array(column, pa.string()) for column in zip(*rows, strict=True))
    messages, hashes = entry_hashes(topics, unique, split_keys(keys))
    expected = [
        (number, key_hash(topic, key))
        for number, (topic, unique_key, text) in enumerate(rows)
        for key in index_keys(unique_key, text)
    ]
    assert list(zip(messages.tolist(), hashes.tolist(), strict=True)) == expected


def test_a_hash_without_an_absolute_value_is_zero() -> None:
    # Seven letters of 31 reach every hash: find the key for which "T#" + key has the hash -2147483648.
    wanted = (-(1 << 31) - java_hash("T#" + "A" * 7)) % (1 << 32)
    key = "".join(chr(ord("A") + wanted // 31**place % 31) for place in range(6, -1, -1))
    assert java_hash(f"T#{key}") == -(1 << 31)
    _, hashes = entry_hashes(pa.array(["T"]), pa.array([key]), pa.array([[]], pa.list_(pa.string())))
    assert hashes.tolist() == [0]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.data())
def test_index_files_are_the_broker_s_byte_for_byte_however_many_runs_made_them(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    slots, entries = data.draw(st.integers(1, 40)), data.draw(st.integers(2, 30))
    keys = data.draw(st.lists(st.sampled_from("abcdefghij"), max_size=90))
    steps = data.draw(st.lists(st.sampled_from([0, 1, 999, 1_000, 5_500, -40_000]), min_size=90, max_size=90))
    begin = data.draw(st.sampled_from([0, 500, 1_700_000_000_000]))
    times = [int(time) for time in begin + np.maximum(np.cumsum(steps), 0)]
    postings = [(f"T#{key}", 100 * number, times[number]) for number, key in enumerate(keys)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(keys)), max_size=3)))
    root = tmp_path_factory.mktemp("index")
    previous = None
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(keys)], strict=True)):
        previous = _build(root, number, postings[start:stop], slots, entries, previous)
    assert previous is not None
    found = sorted((previous / "index").iterdir()) if (previous / "index").exists() else []
    assert [path.read_bytes() for path in found] == index_files(postings, slots, entries)


def _build(
    root: Path,
    number: int,
    postings: list[tuple[str, int, int]],
    slots: int,
    entries: int,
    previous: Path | None,
) -> Path:
    """Run the job once; the entries come in two parts."""
    files = LocalFiles()
    target = root / str(number)
    rows = [(key_hash(*text.split("#")), position, time) for text, position, time in postings]
    half = len(rows) // 2
    runs = []
    for part, chosen in enumerate((rows[:half], rows[half:])):
        path = root / f"{number}-{part}.entries"
        path.write_bytes(np.array(chosen, ENTRY).tobytes())
        runs.append(EntryRun(str(path), 0, len(chosen)))
    before = previous_index(files, None if previous is None else str(previous), entries, 0)
    plans = plan_index_files(files, runs, f"{target}/index", slots, entries, before)
    for plan in plans:
        write_index_file(plan)
    kept = before.kept if before.unfinished is None or plans else (*before.kept, before.unfinished)
    for name in kept:
        files.link(name, f"{target}/index/{Path(name).name}")
    return target


def test_entries_are_taken_in_slices_and_chains_go_on_across_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_index, "_SLICE", 7)
    postings = [(f"T#{number % 5}", number, 1_700_000_000_000 + number) for number in range(60)]
    target = _build(tmp_path, 0, postings, 3, 100, None)
    assert [path.read_bytes() for path in (target / "index").iterdir()] == index_files(postings, 3, 100)


def test_an_index_file_takes_up_no_more_disk_than_is_used_of_it(tmp_path: Path) -> None:
    target = _build(tmp_path, 0, [("T#a", 0, 1_700_000_000_000)], 5_000_000, 20_000_000, None)
    (file,) = (target / "index").iterdir()
    status = file.stat()
    assert status.st_size == 420_000_040
    assert status.st_blocks * 512 <= 64 << 10
    assert file.name == "20231114221320000"
    assert status.st_mtime_ns == 1_700_000_000_000 * 1_000_000


def test_files_of_other_file_systems_are_the_same_without_holes(tmp_path: Path) -> None:
    """They take streams only: no seeking back, no holes."""
    rows = [(key_hash("T", key), 10 * number, 1_700_000_000_000) for number, key in enumerate("abcabd")]
    (tmp_path / "entries").write_bytes(np.array(rows, ENTRY).tobytes())
    runs = (EntryRun(str(tmp_path / "entries"), 0, len(rows)),)
    found = []
    for name, files in (("a", LocalFiles()), ("b", ArrowFiles(fs.LocalFileSystem()))):
        plan = IndexFilePlan(files, f"{tmp_path}/{name}/index/1", 10, 100, None, 0, runs)
        assert write_index_file(plan) == 40 + 10 * 4 + 6 * 20
        writer = QueueWriter(files, f"{tmp_path}/{name}", "T", 0, file_bytes=40, previous=None, log_begin=0)
        entries = np.zeros(3, QUEUE_ENTRY)
        entries["position"], entries["size"] = (0, 100, 200), 100
        writer.add(0, entries, np.arange(3).astype(TIME))
        writer.close()
        found.append(files_below(tmp_path / name, "."))
    assert found[0] == found[1]
    assert len(found[0]) == 5


def test_index_file_names_are_unique_and_grow() -> None:
    assert name_after(1_700_000_000_123, "") == "20231114221320123"
    assert name_after(1_700_000_000_123, "20231114221320123") == "20231114221320124"
    assert name_after(5, "20231231235959999") == "20240101000000000"
    assert name_after(-5, "") == "19700101000000000"
    assert name_after(1 << 62, "") == "99991231235959999"


RECORDS = st.lists(
    st.tuples(st.one_of(st.just(None), st.integers(0, 30)), st.integers(100, 120)), min_size=1, max_size=60
)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(RECORDS, st.integers(0, 25), st.lists(st.integers(0, 60), max_size=2))
def test_entries_are_numbered_as_by_a_broker_whatever_offsets_the_records_state(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int | None, int]], first: int, cuts: list[int]
) -> None:
    """None is the next queue offset; a number is an offset out of order: a gap, a repeat, a restart."""
    root = tmp_path_factory.mktemp("queue")
    disk = OsDisk()
    queue = ConsumeQueue("T", 0, root / "broker", 200, disk, MmapCache(disk))
    rows: list[tuple[str, int, int, int, int, int, int]] = []
    offset, position = first, 0
    for step, size in steps:
        offset = offset if step is None else step
        queue.build(position, size, offset, offset, 1_700_000_000_000)
        rows.append(("T", 0, offset, position, size, offset, 1_700_000_000_000 + position))
        position += size
        offset += 1
    bounds = sorted(min(cut, len(rows)) for cut in cuts)
    previous = None
    for number, (start, stop) in enumerate(zip([0, *bounds], [*bounds, len(rows)], strict=True)):
        if start < stop:
            previous = _write_queue(root / str(number), rows[start:stop], previous)
    folder = Path(previous or "") / "consumequeue/T/0"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in (root / "broker").iterdir()
    }
    entries = [
        entry for path in sorted(folder.iterdir()) for entry in struct.iter_unpack(">qiq", path.read_bytes())
    ]
    times = b"".join(path.read_bytes() for path in sorted(Path(f"{previous}/timeindex/T/0").iterdir()))
    for (at, size, _), (time,) in zip(entries, struct.iter_unpack(">q", times), strict=True):
        assert time == (1_700_000_000_000 + at if 0 < size < 0x7FFF_FFFF else 0)


def _write_queue(
    target: Path, rows: list[tuple[str, int, int, int, int, int, int]], previous: str | None
) -> str:
    names = ("topic", "queueId", "queueOffset", "physicalOffset", "size", "tagsCode", "storeTimestampMs")
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    pieces = pack(pa.RecordBatch.from_arrays(columns, list(names)))
    writer = QueueWriter(LocalFiles(), str(target), "T", 0, file_bytes=200, previous=previous, log_begin=0)
    for piece in sorted(pieces.to_pylist(), key=lambda piece: int(piece["physicalOffset"])):
        entries, times = np.frombuffer(piece["entries"], QUEUE_ENTRY), np.frombuffer(piece["times"], TIME)
        writer.add(piece["queueOffset"], entries, times)
    writer.close()
    return str(target)


def test_a_gap_in_queue_offsets_is_reported_once_for_all_entries_after_it(tmp_path: Path) -> None:
    writer = QueueWriter(LocalFiles(), str(tmp_path), "T", 0, file_bytes=200, previous=None, log_begin=0)
    for number, offset in enumerate((3, 4, 7, 8, 4, 20)):
        entries = np.zeros(1, QUEUE_ENTRY)
        entries["position"], entries["size"] = 100 * number, 100
        writer.add(offset, entries, np.zeros(1, TIME))
    assert [(gap.number, gap.found, gap.physical_offset) for gap in writer.gaps] == [
        (5, 7, 200),
        (7, 20, 500),
    ]
    assert (writer.gap_count, writer.repeated, writer.entries) == (2, 1, 5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (IndexOptions(max_index_num=1), "maxIndexNum at least 2"),
        (IndexOptions(max_hash_slot_num=0), "maxHashSlotNum must be at least 1"),
        (IndexOptions(max_index_num=200_000_000), "the maximum is 2147483647"),
        (IndexOptions(consume_queue_file_bytes=30), "a multiple of 20"),
        (IndexOptions(message_delay_level="1s soon"), "messageDelayLevel"),
    ],
)
def test_settings_that_no_broker_takes_are_refused(options: IndexOptions, text: str) -> None:
    with pytest.raises(PipelineError, match=text):
        options.check()
