"""Opening after a clean stop and after a crash (docs/spec/store.md 9, 16.5 to 16.7)."""

from __future__ import annotations

import shutil
import struct
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from rewindmq.broker.store import GetMessageStatus, MessageStore, PutStatus, StoredMessage, StoreError
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.protocol.message.record import MAGIC_V2, decode_records, encode_record
from rewindmq.protocol.text import java_hash
from tests.broker.store.store_box import StoreBox

SEGMENT = 65_536
BODY = 8_000  # eight records fill a segment


def commit_log(box: StoreBox) -> Path:
    return box.root / "commitlog"


def queue_folder(box: StoreBox, topic: str = "T", queue_id: int = 0) -> Path:
    return box.root / "consumequeue" / topic / str(queue_id)


def segment(box: StoreBox, number: int) -> Path:
    return commit_log(box) / f"{number * SEGMENT:020d}"


def patch(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def zero_checkpoint(box: StoreBox) -> None:
    (box.root / "checkpoint").unlink()


def stored_bodies(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[bytes]:
    offset = store.min_offset(topic, queue_id)
    found: list[bytes] = []
    while (result := store.get_message(topic, queue_id, offset, 32, None)).status is GetMessageStatus.FOUND:
        records = decode_records(result.body)
        assert [record.queue_offset for record in records] == list(range(offset, result.next_begin_offset))
        found += [record.stored_body for record in records]
        offset = result.next_begin_offset
    assert offset == store.max_offset(topic, queue_id)
    return found


def body(number: int) -> bytes:
    return b"%04d" % number + b"." * (BODY - 4)


@pytest.fixture
def filled(box: StoreBox) -> MessageStore:
    """Five segments: 40 messages of T in turn on two queues, stored at 1 000 000, 1 010 000, ..."""
    store = box.open()
    for number in range(40):
        box.put(store, queue_id=number % 2, body=body(number), at=1_000_000 + number * 10_000)
    return store


def expected(queue_id: int, count: int = 40) -> list[bytes]:
    return [body(number) for number in range(count) if number % 2 == queue_id]


def assert_complete(store: MessageStore, count: int = 40) -> None:
    assert stored_bodies(store, queue_id=0) == expected(0, count)
    assert stored_bodies(store, queue_id=1) == expected(1, count)
    result = store.put_message(StoredMessage("T", count % 2, body(count)))
    assert result.queue_offset == count // 2


def test_no_files(box: StoreBox) -> None:
    store = box.open()
    assert store.max_commit_log_offset == 0
    assert sorted(path.name for path in box.root.iterdir()) == ["abort", "config", "lock"]
    store.close()
    assert sorted(path.name for path in box.root.iterdir()) == ["checkpoint", "config", "lock"]
    assert (box.root / "checkpoint").stat().st_size == 4_096
    assert (box.root / "lock").read_bytes() == b"lock"


def test_a_clean_stop_keeps_everything(box: StoreBox, filled: MessageStore) -> None:
    end = filled.max_commit_log_offset
    filled.close()
    store = box.open()
    assert (store.max_commit_log_offset, store.flushed_offset) == (end, end)
    assert_complete(store)


def test_a_crash_keeps_everything_that_was_mapped(box: StoreBox, filled: MessageStore) -> None:
    assert_complete(box.crash().open())


def test_data_that_a_kill_left_in_memory_are_durable_before_the_broker_serves(box: StoreBox) -> None:
    class Recording(OsDisk):
        def __init__(self) -> None:
            self.synced: list[Path] = []

        def sync(self, path: Path) -> None:
            self.synced.append(path)
            super().sync(path)

    store = box.open()
    for _ in range(3):
        box.put(store, body=b"x" * 40_000)
    disk, crashed = Recording(), box.crash()
    again = crashed.open(disk=disk)
    assert disk.synced == sorted((crashed.root / "commitlog").iterdir())
    assert again.flushed_offset == again.max_commit_log_offset > 0


def test_an_all_zero_last_segment_as_a_broker_allocates_ahead(box: StoreBox, filled: MessageStore) -> None:
    filled.close()
    with segment(box, 5).open("wb") as file:
        file.truncate(SEGMENT)
    store = box.open()
    assert not segment(box, 5).exists()
    assert_complete(store)


def test_an_empty_file_that_is_not_the_last_is_refused_and_stays(box: StoreBox, filled: MessageStore) -> None:
    crashed = box.crash()
    segment(crashed, 1).write_bytes(b"")
    with pytest.raises(StoreError, match="has 0 bytes"):
        crashed.open()
    assert segment(crashed, 1).exists()


def test_an_empty_last_file_as_a_crash_between_creating_and_sizing_leaves_it(
    box: StoreBox, filled: MessageStore
) -> None:
    crashed = box.crash()
    segment(crashed, 5).touch()
    (queue_folder(crashed) / f"{6_000:020d}").touch()
    assert_complete(crashed.open())


@pytest.mark.parametrize("kept", [0, 4, 50, 1_000, BODY + 85])
@pytest.mark.parametrize("clean", [True, False])
def test_a_torn_last_record_is_cut_off(box: StoreBox, filled: MessageStore, kept: int, clean: bool) -> None:
    for number in (40, 41):
        box.put(filled, queue_id=number % 2, body=body(number))
    torn = box.put(filled, body=body(42))
    filled.close()
    if not clean:
        (box.root / "abort").touch()
    patch(segment(box, 5), torn.physical_offset - 5 * SEGMENT + kept, bytes(torn.size - kept))
    store = box.open()
    assert store.max_commit_log_offset == torn.physical_offset
    assert_complete(store, count=42)


@pytest.mark.parametrize("clean", [True, False])
def test_a_wrong_crc_in_the_third_from_last_segment_cuts_there(
    box: StoreBox, filled: MessageStore, clean: bool
) -> None:
    filled.close()
    if not clean:
        (box.root / "abort").touch()
        zero_checkpoint(box)
    patch(segment(box, 2), (BODY + 92) * 3 + 100, b"?")
    store = box.open()
    assert store.max_commit_log_offset == 2 * SEGMENT + (BODY + 92) * 3
    assert sorted(path.name for path in commit_log(box).iterdir()) == [
        f"{n * SEGMENT:020d}" for n in range(3)
    ]
    assert_complete(store, count=19)


def test_a_wrong_crc_in_the_fourth_from_last_segment_is_not_noticed_after_a_clean_stop(
    box: StoreBox, filled: MessageStore
) -> None:
    filled.close()
    patch(segment(box, 1), (BODY + 92) * 3 + 100, b"?")
    store = box.open()
    assert store.max_offset("T", 0) == store.max_offset("T", 1) == 20


def test_what_was_cut_off_never_comes_back(box: StoreBox, filled: MessageStore) -> None:
    """Records behind a damaged one are intact and name their own position: a later scan must not see them."""
    filled.close()
    patch(segment(box, 4), 100, b"?")
    store = box.open()
    assert stored_bodies(store) == expected(0, 32)
    box.put(store, queue_id=0, body=body(32))
    again = box.crash().open()
    assert stored_bodies(again, queue_id=0) == expected(0, 33)
    assert stored_bodies(again, queue_id=1) == expected(1, 32)


@pytest.mark.parametrize("abort", [False, True])
@pytest.mark.parametrize("checkpoint", ["recent", "missing", "old"])
def test_deleted_queues_are_rebuilt_from_the_first_byte_kept(
    box: StoreBox, filled: MessageStore, abort: bool, checkpoint: str
) -> None:
    """Store.md 9.6; 4.9.4 leaves holes with abort present and a recent checkpoint, this store does not."""
    filled.close()
    if abort:
        (box.root / "abort").touch()
    if checkpoint == "missing":
        zero_checkpoint(box)
    elif checkpoint == "old":
        (box.root / "checkpoint").write_bytes(
            struct.pack(">qqq", 1_003_500, 1_003_500, 0).ljust(4_096, b"\0")
        )
    shutil.rmtree(box.root / "consumequeue")
    assert_complete(box.open())


@pytest.mark.parametrize("abort", [False, True])
def test_one_deleted_queue_is_rebuilt_while_another_is_complete(
    box: StoreBox, filled: MessageStore, abort: bool
) -> None:
    filled.close()
    if abort:
        (box.root / "abort").touch()
    shutil.rmtree(queue_folder(box, queue_id=1))
    assert_complete(box.open())


@pytest.mark.parametrize("abort", [False, True])
@pytest.mark.parametrize("kept_entries", [0, 1, 3, 19])
def test_a_queue_shorter_than_the_log_is_completed(
    box: StoreBox, filled: MessageStore, abort: bool, kept_entries: int
) -> None:
    filled.close()
    if abort:
        (box.root / "abort").touch()
    patch(queue_folder(box) / ("0" * 20), kept_entries * 20, bytes((20 - kept_entries) * 20))
    assert_complete(box.open())


@pytest.mark.parametrize("abort", [False, True])
def test_a_queue_longer_than_the_log_is_cut(box: StoreBox, filled: MessageStore, abort: bool) -> None:
    filled.close()
    if abort:
        (box.root / "abort").touch()
    for number in (3, 4):
        segment(box, number).unlink()
    assert_complete(box.open(), count=24)


def test_a_queue_whose_every_record_is_gone_starts_over(box: StoreBox, filled: MessageStore) -> None:
    filled.close()
    for number in range(1, 5):
        segment(box, number).unlink()
    patch(segment(box, 0), 0, bytes(SEGMENT))
    store = box.open()
    assert store.max_offset("T", 0) == 0
    assert box.put(store).queue_offset == 0


def test_without_a_commit_log_every_queue_is_destroyed(box: StoreBox, filled: MessageStore) -> None:
    filled.close()
    shutil.rmtree(commit_log(box))
    store = box.open()
    assert store.max_offset("T", 0) == store.max_offset("T", 1) == 0
    assert list(queue_folder(box).iterdir()) == []


def test_a_log_that_starts_late_gives_filler_and_a_raised_minimum(
    box: StoreBox, filled: MessageStore
) -> None:
    filled.close()
    segment(box, 0).unlink()
    shutil.rmtree(box.root / "consumequeue")
    store = box.open()
    assert store.min_offset("T", 0) == 4
    assert stored_bodies(store) == expected(0)[4:]
    filler = (queue_folder(box) / ("0" * 20)).read_bytes()[:80]
    assert filler == struct.pack(">qiq", 0, 2_147_483_647, 0) * 4
    store.close()
    assert box.open().min_offset("T", 0) == 4


def test_an_abnormal_start_scans_from_the_checkpoint_on(box: StoreBox, filled: MessageStore) -> None:
    filled.close()
    (box.root / "abort").touch()
    # Covers the first record of segment 3 (stored at 1 240 000) but not that of segment 4.
    checkpoint = struct.pack(">qqq", 1_250_000, 1_300_000, 0).ljust(4_096, b"\0")
    (box.root / "checkpoint").write_bytes(checkpoint)
    patch(segment(box, 2), 200, b"?")
    assert box.open().max_offset("T", 0) == 20
    # Without a checkpoint everything is verified.
    crashed = box.crash()
    zero_checkpoint(crashed)
    assert crashed.open().max_offset("T", 0) == 8


def test_delayed_messages_carry_their_delivery_time_in_every_path(box: StoreBox) -> None:
    def due_times(store: MessageStore) -> list[int]:
        return [store.get_message("SCHEDULE_TOPIC_XXXX", 2, 0, 32, None).message_count] + [
            struct.unpack_from(">8xiq", raw, at)[1]
            for raw in [(queue_folder(box, "SCHEDULE_TOPIC_XXXX", 2) / ("0" * 20)).read_bytes()]
            for at in range(0, 60, 20)
        ]

    store = box.open()
    for level in (b"3", b"18", b"25"):
        properties = b"DELAY\x01" + level + b"\x02TAGS\x01TagA"
        store.put_message(StoredMessage("SCHEDULE_TOPIC_XXXX", 2, b"", properties, java_hash("TagA")))
    due = [3, box.now + 10_000, box.now + 7_200_000, box.now + 7_200_000]
    assert due_times(store) == due
    store.close()
    for leave_abort in (False, True):
        shutil.rmtree(box.root / "consumequeue")
        zero_checkpoint(box)
        if leave_abort:
            (box.root / "abort").touch()
        store = box.open()
        assert due_times(store) == due
        store.close()


def test_a_clean_start_rebuilds_only_missing_entries(box: StoreBox, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rewindmq.store")
    store = box.open()
    for number in range(1_000):
        box.put(store, queue_id=number % 3, body=body(number))
    assert store.rebuilt_entries == 0
    store.close()
    assert box.open().rebuilt_entries == 0
    assert not caplog.records
    again = box.crash("without one queue")
    (again.root / "abort").unlink()
    shutil.rmtree(again.root / "consumequeue" / "T" / "1")
    assert again.open().rebuilt_entries == 333
    assert "333 consume queue entries rebuilt" in caplog.text


def test_queues_that_another_program_wrote_are_taken_as_they_are(box: StoreBox) -> None:
    store = box.open()
    for number in range(1_000):
        box.put(store, queue_id=number % 3, body=body(number))
    store.close()
    written = {path: path.read_bytes() for path in (box.root / "consumequeue").rglob("?" * 20)}
    shutil.rmtree(box.root / "consumequeue")
    (box.root / "checkpoint").unlink()
    for path, data in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    store = box.open()
    assert store.rebuilt_entries == 0
    assert [store.max_offset("T", queue_id) for queue_id in range(3)] == [334, 333, 333]


def test_rebuilt_entries_carry_the_tag_hash(box: StoreBox) -> None:
    store = box.open()
    box.put(store, tag="TagA")
    box.put(store, tag="标签")
    box.put(store)
    store.close()
    shutil.rmtree(box.root / "consumequeue")
    store = box.open()
    assert store.get_message("T", 0, 0, 32, frozenset((2_598_919,))).next_begin_offset == 3
    assert store.get_message("T", 0, 0, 32, frozenset((2_598_919,))).message_count == 1
    assert store.get_message("T", 0, 0, 32, frozenset((857_175,))).message_count == 1
    assert store.get_message("T", 0, 0, 32, frozenset((0,))).message_count == 1


def test_flush_says_how_far_the_log_is_durable(box: StoreBox) -> None:
    store = box.open()
    assert store.flush() == 0
    box.put(store)
    assert store.flushed_offset == 0
    assert store.flush() == store.max_commit_log_offset == store.flushed_offset
    store.flush_all()
    physic, logics, index = struct.unpack_from(">qqq", (box.root / "checkpoint").read_bytes())
    assert (physic, logics, index) == (box.now, box.now, 0)


def test_a_worker_thread_flushes_while_messages_are_put(box: StoreBox) -> None:
    store = box.open()
    flushes: list[tuple[int, Future[int]]] = []
    with ThreadPoolExecutor(1) as worker:
        for number in count():
            if number >= 400 and len(flushes) > 3:
                break
            result = box.put(store, body=body(number % 400))
            if not flushes or flushes[-1][1].done():
                flushes.append((result.physical_offset + result.size, worker.submit(store.flush)))
    # Each flush covers at least the messages that were put before it, and never reports more than exist.
    end = store.max_commit_log_offset
    assert all(asked <= flush.result() <= end for asked, flush in flushes)
    assert store.flush() == store.flushed_offset == end


def test_a_v2_record_is_served_again_after_a_crash(box: StoreBox) -> None:
    store = box.open(writes_v2=True)
    topic = "x" * 200
    assert store.put_message(StoredMessage(topic, 3, b"long")).status is PutStatus.PUT_OK
    assert store.put_message(StoredMessage("T", 0, b"short")).status is PutStatus.PUT_OK
    assert store.put_message(StoredMessage("x" * 256, 0, b"no folder")).status is PutStatus.MESSAGE_ILLEGAL
    store = box.crash().open()
    assert stored_bodies(store, topic, 3) == [b"long"]
    assert stored_bodies(store, "T") == [b"short"]


def test_a_v2_record_of_a_5x_broker_is_kept_and_served(box: StoreBox) -> None:
    """Topics above 127 bytes; 4.9.4 would cut the log here."""
    topic = "x" * 200
    store = box.open()
    box.put(store, body=b"before")
    position = store.max_commit_log_offset
    store.close()
    v1 = encode_record(
        topic="",
        stored_body=b"v2",
        properties=b"",
        queue_id=0,
        queue_offset=0,
        physical_offset=position,
        born_timestamp=1,
        born_host=bytes(8),
        store_timestamp=2,
        store_host=bytes(8),
    )
    size = len(v1) + 1 + len(topic)
    v2 = struct.pack(">iI", size, MAGIC_V2) + v1[8:90] + struct.pack(">h", 200) + topic.encode() + b"\0\0"
    assert len(v2) == size
    patch(segment(box, 0), position, v2)
    store = box.open()
    assert store.look_message(position) == v2
    assert stored_bodies(store, topic) == [b"v2"]
    refused = store.put_message(StoredMessage(topic, 0, b""))
    assert refused.status is PutStatus.MESSAGE_ILLEGAL
    assert store.max_commit_log_offset == position + size
