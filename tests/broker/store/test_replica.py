"""A slave's store: bytes of another log at the same positions, in pieces of any size."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store import MessageStore, PutStatus, StoreConfig, StoredMessage
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.messages.replica import Arrival
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.broker.store.store_box import StoreBox, UnsyncedDisk, drop_segment
from tests.support.properties import few_and_all
from tests.support.unused_topics import remove_unused_topics

SMALL = StoreConfig(mapped_file_size_commit_log=4_096, mapped_file_size_consume_queue=200)
messages = st.lists(
    st.tuples(st.sampled_from(["T", "SCHEDULE_TOPIC_XXXX", "U"]), st.integers(0, 2), st.integers(0, 1_500)),
    max_size=40,
)


def open_store(root: Path, config: StoreConfig = SMALL) -> MessageStore:
    store = MessageStore(root, config, lambda: 1_700_000_000_000, UnsyncedDisk())
    store.open()
    return store


def fill(store: MessageStore, wanted: list[tuple[str, int, int]]) -> None:
    for topic, queue_id, size in wanted:
        # A schedule queue's id says its level.
        result = store.put_message(
            StoredMessage(topic, queue_id, b"x" * size, b"TAGS\x01a\x02", tags_code=97)
        )
        assert result.status is PutStatus.PUT_OK


def copy(master: MessageStore, slave: MessageStore, piece: int = 1_000) -> None:
    """Everything the slave lacks."""
    slave.restart_replica()
    position = slave.max_commit_log_offset
    while data := master.log_chunk(position, piece):
        slave.append_replica(position, data)
        position += len(data)


def files(store: MessageStore, root: Path) -> dict[str, bytes]:
    """Log and queues as they are on disk."""
    store.flush_all()
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("commitlog", "consumequeue")
        for path in (root / folder).rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("examples", few_and_all(4, 15))
def test_a_log_split_into_any_pieces_makes_an_identical_store(examples: int) -> None:
    @settings(max_examples=examples)
    @given(wanted=messages, pieces=st.lists(st.integers(1, 3_000), min_size=1, max_size=30), data=st.data())
    def run(wanted: list[tuple[str, int, int]], pieces: list[int], data: st.DataObject) -> None:
        check_split(wanted, pieces, data)

    run()


def check_split(wanted: list[tuple[str, int, int]], pieces: list[int], data: st.DataObject) -> None:
    """Copy a log with these messages in these pieces."""
    root = Path(tempfile.mkdtemp())
    try:
        master, slave = open_store(root / "master"), open_store(root / "slave")
        slave.become_replica()
        fill(master, wanted)
        arrived: list[Arrival] = []
        position, turn = 0, 0
        while chunk := master.log_chunk(position, pieces[turn % len(pieces)]):
            turn += 1
            if data.draw(st.integers(0, 9)) == 0:
                # The connection breaks: the slave continues from its last complete record.
                slave.restart_replica()
                position = slave.max_commit_log_offset
                continue
            before = {(a.topic, a.queue_id): a.max_offset for a in arrived}
            arrived += slave.append_replica(position, chunk)
            position += len(chunk)
            assert slave.replica_position == position
            # Nothing can be read that is not there as a whole.
            for topic, queue_id in before:
                result = slave.get_message(topic, queue_id, slave.max_offset(topic, queue_id) - 1, 1, None)
                assert len(decode_records(result.body)) == 1
        assert len(arrived) == len(wanted)
        assert files(slave, root / "slave") == files(master, root / "master")
        master.close()
        slave.close()
    finally:
        shutil.rmtree(root)


def test_a_queue_that_starts_over_at_the_master_does_so_at_the_slave(box: StoreBox, tmp_path: Path) -> None:
    """The topic was deleted, or the queue is empty: the slave learns of it only from later offsets."""
    config = StoreConfig(mapped_file_size_commit_log=4_096, mapped_file_size_consume_queue=200)
    master = box.open(config=config)
    slave = open_store(tmp_path / "slave", config)
    fill(master, [("T", 0, 10)] * 25 + [("U", 0, 10)] * 3)
    copy(master, slave)
    assert remove_unused_topics(master.cleaner, {"U"}) == 1
    fill(master, [("T", 0, 20)] * 3 + [("U", 0, 20)])
    copy(master, slave)
    for topic, count in (("T", 3), ("U", 4)):
        assert slave.max_offset(topic, 0) == master.max_offset(topic, 0) == count
        expected = master.get_message(topic, 0, 0, 32, None)
        assert slave.get_message(topic, 0, 0, 32, None) == expected
    slave.close()


def test_a_slave_keeps_compaction_topics_when_their_segments_expire(box: StoreBox, tmp_path: Path) -> None:
    """No read happened there meanwhile; a read would have copied the bytes."""
    config = StoreConfig(mapped_file_size_commit_log=4_096, mapped_file_size_consume_queue=200)
    master = box.open(config=config)
    slave = open_store(tmp_path / "slave", config)
    for store in (master, slave):
        store.set_compaction_topics(["Prices"])
    for number in range(3):
        master.put_message(StoredMessage("Prices", 0, b"1", b"KEYS\x01k%d\x02" % number))
    fill(master, [("T", 0, 1_000)] * 20)
    copy(master, slave)
    for store in (master, slave):
        store.flush()
        while drop_segment(store, None):
            pass
        run_at_once(store.cleaner.expire_queues(ends_idle=True))
        assert store.look_message(0) is None
        assert store.get_message("Prices", 0, 0, 32, None).message_count == 3
    slave.close()


def test_a_slave_takes_no_messages_of_its_own(box: StoreBox) -> None:
    slave = box.open()
    slave.become_replica()
    assert slave.put_message(StoredMessage("T", 0, b"")).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_an_empty_slave_may_begin_with_a_later_segment(box: StoreBox, tmp_path: Path) -> None:
    """The master's first segments may have expired; RocketMQ's master sends a new slave only the last."""
    master = box.open()
    for _ in range(1_500):
        box.put(master, body=b"x" * 100)
    slave = open_store(tmp_path / "slave", box.config)
    position = master.last_segment_base
    assert position > 0
    while data := master.log_chunk(position, 5_000):
        slave.append_replica(position, data)
        position += len(data)
    assert slave.max_offset("T", 0) == 1_500
    assert slave.min_offset("T", 0) > 0
    first = slave.min_offset("T", 0)
    assert slave.get_message("T", 0, first, 32, None).body == master.get_message("T", 0, first, 32, None).body
    slave.close()


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 64,
        bytes(64),
        b"\x00\x00\x00\x40\xda\xa3\x20\xa7" + b"j" * 56,
        b"\x7f\xff\xff\xff\xda\xa3\x20\xa7" * 8,
    ],
)
def test_bytes_that_are_no_record_are_refused(box: StoreBox, data: bytes) -> None:
    """A log that went another way: nothing of it becomes part of the slave's."""
    slave = box.open()
    with pytest.raises(StoreError, match="are not a record"):
        slave.append_replica(0, data)
    slave.restart_replica()
    assert slave.max_commit_log_offset == 0


def test_another_position_is_refused(box: StoreBox, tmp_path: Path) -> None:
    master = open_store(tmp_path / "master", box.config)
    fill(master, [("T", 0, 10)] * 2)
    slave = box.open()
    with pytest.raises(StoreError, match="not the start of a segment"):
        slave.append_replica(77, b"x")
    chunk = master.log_chunk(0, 50)
    slave.append_replica(0, chunk)
    with pytest.raises(StoreError, match="50 must come next, not 0"):
        slave.append_replica(0, chunk)
    master.close()


def test_another_segment_size_is_reported(box: StoreBox, tmp_path: Path) -> None:
    master = open_store(tmp_path / "master")
    fill(master, [("T", 0, 1_000)] * 5)
    slave = box.open()
    with pytest.raises(StoreError, match="mappedFileSizeCommitLog"):
        copy(master, slave)
    assert slave.max_offset("T", 0) == 3
    master.close()


def test_a_record_beyond_the_slaves_limit_is_refused_before_it_is_gathered(tmp_path: Path) -> None:
    config = msgspec.structs.replace(StoreConfig(), mapped_file_size_commit_log=2_000_000)
    master = open_store(tmp_path / "master", config)
    fill(master, [("T", 0, 1_000_000)])
    slave = open_store(tmp_path / "slave", msgspec.structs.replace(config, max_message_size=1_000))
    with pytest.raises(StoreError, match="maxMessageSize"):
        slave.append_replica(0, master.log_chunk(0, 200_000))
    master.close()
    slave.close()


SLAVE = """
import sys
from pathlib import Path
from rewindmq.broker.store import MessageStore, StoreConfig
config = StoreConfig(mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=6000)
master = MessageStore(Path(sys.argv[1]), config, lambda: 1000)
slave = MessageStore(Path(sys.argv[2]), config, lambda: 1000)
master.open()
slave.open()
position = 0
while data := master.log_chunk(position, 777):
    slave.append_replica(position, data)
    position += len(data)
    print(slave.max_commit_log_offset, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("copied", [1, 100_000])
def test_a_slave_killed_while_it_copies_goes_on_where_its_log_ends(
    box: StoreBox, tmp_path: Path, copied: int
) -> None:
    master = box.open()
    for number in range(3_000):
        box.put(master, queue_id=number % 3, body=b"%04d" % number * 20)
    end = master.max_commit_log_offset
    master.close()
    root = tmp_path / "slave"
    command = [sys.executable, "-c", SLAVE, str(box.root), str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        acknowledged = 0
        while acknowledged < copied:
            acknowledged = int(process.stdout.readline())
        process.kill()
    master, slave = box.open(), open_store(root, box.config)
    assert acknowledged <= slave.max_commit_log_offset <= end
    copy(master, slave)
    for queue_id in range(3):
        assert slave.max_offset("T", queue_id) == 1_000
    slave_log = {name: data for name, data in files(slave, root).items() if name.startswith("commitlog")}
    master_log = {n: data for n, data in files(master, box.root).items() if n.startswith("commitlog")}
    assert slave_log == master_log
    slave.close()
