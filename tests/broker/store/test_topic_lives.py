"""After any history of creations, deletions, kills and losses, each message is at its offset in its own life.

A topic that is deleted and created again has several lives in one log. No message of an earlier life may be
in a queue, and none of the present life may be missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store import BatchEntry, MessageStore, PutStatus, StoreConfig, StoredMessage
from rewindmq.broker.store.files.disk import Disk
from rewindmq.protocol.message.record import decode_records, encode_record
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.broker.store.store_box import StoreBox, UnsyncedDisk, drop_segment
from tests.support.properties import few_and_all
from tests.support.unused_topics import remove_unused_topics

CONFIG = StoreConfig(mapped_file_size_commit_log=4_096, mapped_file_size_consume_queue=200)
TOPICS = ("T", "U", "%RETRY%G")
QUEUES = st.tuples(st.sampled_from(TOPICS), st.integers(0, 2))
STEPS = st.one_of(
    st.tuples(st.just("put"), QUEUES, st.integers(0, 900)),
    st.tuples(st.just("batch"), QUEUES, st.integers(1, 14)),
    st.tuples(st.just("delete"), st.sampled_from(TOPICS)),
    st.tuples(st.just("delete_killed"), st.sampled_from(TOPICS), st.integers(0, 8)),
    st.tuples(st.just("tick"), st.integers(0, 5_000)),
    st.tuples(st.just("follow"), st.integers(1, 3_000)),
    st.tuples(
        st.sampled_from(["flush", "restart", "crash", "lose_queues", "expire", "slave_crash", "promote"])
    ),
)

Queue = tuple[str, int]


class Killed(BaseException):
    """The process ends here."""


class DeadlyDisk(UnsyncedDisk):
    """Ends the process before the n-th change of the disk, if told to."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1

    def _change(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    def create(self, path: Path, size: int) -> None:
        self._change()
        super().create(path, size)

    def allocate(self, path: Path, offset: int, length: int) -> None:
        self._change()
        super().allocate(path, offset, length)

    def remove(self, path: Path) -> None:
        self._change()
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        self._change()


class History:
    """A store, its slave, and what they must have: offset, body and log position of each queue's messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1_000_000
        self.generation = 0
        self.number = 0
        self.expected: dict[Queue, list[tuple[int, bytes, int]]] = {}
        self.root = folder / "0"
        self.disk = DeadlyDisk()
        self.store = self.opened(self.root, self.disk)
        self.slave_root = folder / "slave 0"
        self.slave = self.opened_slave()
        self.abandoned: list[MessageStore] = []

    def close(self) -> None:
        for store in (self.store, self.slave, *self.abandoned):
            store.close()

    def opened(self, root: Path, disk: Disk) -> MessageStore:
        store = MessageStore(root, CONFIG, lambda: self.now, disk)
        store.open()
        return store

    def opened_slave(self) -> MessageStore:
        slave = self.opened(self.slave_root, DeadlyDisk())
        slave.become_replica()
        return slave

    # Steps

    def put(self, queue: Queue, size: int) -> None:
        self.number += 1
        body = b"%d|" % self.number + b"z" * size
        result = self.store.put_message(StoredMessage(queue[0], queue[1], body))
        self.acknowledged(queue, result.status, result.queue_offset, [(body, result.physical_offset)])

    def batch(self, queue: Queue, count: int) -> None:
        bodies = [b"%d.%d" % (self.number, place) for place in range(count)]
        self.number += 1
        result = self.store.put_batch(StoredMessage(*queue, b""), [BatchEntry(body, b"") for body in bodies])
        entries = [self.store.entry(*queue, result.queue_offset + place) for place in range(count)]
        messages = [
            (body, entry[0]) for body, entry in zip(bodies, entries, strict=True) if entry is not None
        ]
        self.acknowledged(queue, result.status, result.queue_offset, messages)

    def acknowledged(
        self, queue: Queue, status: PutStatus, offset: int, messages: list[tuple[bytes, int]]
    ) -> None:
        kept = self.expected.setdefault(queue, [])
        assert (status, offset) == (PutStatus.PUT_OK, kept[-1][0] + 1 if kept else 0)
        kept += [(offset + place, body, at) for place, (body, at) in enumerate(messages)]

    def delete(self, topic: str) -> None:
        remove_unused_topics(self.store.cleaner, set(TOPICS) - {topic})
        self.forget(topic)

    def forget(self, topic: str) -> None:
        self.expected = {queue: kept for queue, kept in self.expected.items() if queue[0] != topic}

    def delete_killed(self, topic: str, operation: int) -> None:
        """Kill the broker in the middle of a deletion: the topic is as it was, or all of it is gone."""
        self.disk.left = operation
        try:
            self.delete(topic)
        except Killed:
            self.disk.left = -1
            self.crash()
            if not any(self.store.max_offset(*queue) for queue in self.expected if queue[0] == topic):
                self.forget(topic)
        self.disk.left = -1

    def tick(self, milliseconds: int) -> None:
        self.now += milliseconds

    def flush(self) -> None:
        self.store.flush_all()

    def expire(self) -> None:
        """Delete the log's oldest segment, and the queues that have no other messages."""
        self.store.flush()
        if drop_segment(self.store, None):
            run_at_once(self.store.cleaner.expire_queues(ends_idle=False))
            run_at_once(self.store.cleaner.remove_expired_queues())
            begin = self.store.min_commit_log_offset
            self.expected = {
                queue: kept for queue, kept in self.expected.items() if kept and kept[-1][2] >= begin
            }

    def restart(self) -> None:
        self.store.close()
        self.disk = DeadlyDisk()
        self.store = self.opened(self.root, self.disk)

    def crash(self) -> None:
        self.move(lambda root: None)

    def lose_queues(self) -> None:
        """A power failure may take any entry that the checkpoint does not cover: here, it takes all."""
        self.move(lambda root: shutil.rmtree(root / "consumequeue", ignore_errors=True))

    def move(self, damage: Callable[[Path], object]) -> None:
        """Go on with a copy of the files; the store that has them open does nothing more to the copy."""
        self.generation += 1
        self.abandoned.append(self.store)
        root = self.folder / str(self.generation)
        shutil.copytree(self.root, root)
        damage(root)
        self.root, self.disk = root, DeadlyDisk()
        self.store = self.opened(root, self.disk)

    def follow(self, piece: int) -> None:
        """Let the slave copy the log, in pieces of this size; some of it if the pieces are small."""
        self.slave.restart_replica()
        position = self.slave.max_commit_log_offset
        if position < self.store.min_commit_log_offset or position > self.store.max_commit_log_offset:
            return
        for _ in range(12):
            if not (data := self.store.log_chunk(position, piece)):
                break
            self.slave.append_replica(position, data)
            position += len(data)

    def slave_crash(self) -> None:
        self.generation += 1
        self.abandoned.append(self.slave)
        root = self.folder / f"slave {self.generation}"
        shutil.copytree(self.slave_root, root)
        self.slave_root = root
        self.slave = self.opened_slave()

    def promote(self) -> None:
        """Let the slave, once it has everything, take its master's place after a kill of both."""
        for _ in range(500):
            self.follow(3_000)
        if self.slave.max_commit_log_offset == self.store.max_commit_log_offset:
            self.check(self.slave)
            self.slave_crash()
            self.check(self.slave)
            self.abandoned.append(self.store)
            self.slave.close()
            self.root, self.disk = self.slave_root, DeadlyDisk()
            self.store = self.opened(self.root, self.disk)
            self.slave_root = self.folder / f"empty {self.generation}"
            self.slave = self.opened_slave()

    # The law

    def check(self, store: MessageStore) -> None:
        begin = store.min_commit_log_offset
        for topic in TOPICS:
            for queue_id in range(3):
                queue = (topic, queue_id)
                kept = [(offset, body) for offset, body, at in self.expected.get(queue, ()) if at >= begin]
                assert served(store, queue) == kept, queue
                if queue in self.expected:
                    assert store.max_offset(*queue) == self.expected[queue][-1][0] + 1


def served(store: MessageStore, queue: Queue) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    offset = store.min_offset(*queue)
    while messages := decode_records(store.get_message(*queue, offset, 32, None).body):
        assert all((message.topic, message.queue_id) == queue for message in messages)
        assert [message.queue_offset for message in messages] == list(range(offset, offset + len(messages)))
        found += [(message.queue_offset, message.stored_body) for message in messages]
        offset = messages[-1].queue_offset + 1
    assert offset == store.max_offset(*queue)
    return found


@pytest.mark.parametrize("examples", few_and_all(8, 150))
@pytest.mark.parametrize("part", range(3))
def test_each_message_is_at_its_offset_in_its_own_life(
    tmp_path_factory: pytest.TempPathFactory, part: int, examples: int
) -> None:
    @settings(max_examples=examples)
    @given(st.lists(STEPS, min_size=part * 12, max_size=part * 12 + 14))
    def run(steps: list[tuple[Any, ...]]) -> None:
        history = History(tmp_path_factory.mktemp("history"))
        try:
            for name, *arguments in steps:
                getattr(history, name)(*arguments)
            history.check(history.store)
            for start in (history.restart, history.crash, history.lose_queues):
                start()
                history.check(history.store)
            history.promote()
            history.check(history.store)
        finally:
            history.close()
            shutil.rmtree(history.folder)

    run()


def recreated(box: StoreBox) -> MessageStore:
    """Five messages of T, a deletion, and three messages of the next life."""
    store = box.open()
    for number in range(5):
        box.put(store, body=b"old%d" % number)
    remove_unused_topics(store.cleaner, ())
    for number in range(3):
        assert box.put(store, body=b"new%d" % number).queue_offset == number
    return store


NEW = [(0, b"new0"), (1, b"new1"), (2, b"new2")]


@pytest.mark.parametrize("has_queues", [True, False], ids=["queues kept", "queues lost"])
def test_a_kill_after_a_topic_was_created_again_keeps_its_messages(box: StoreBox, has_queues: bool) -> None:
    recreated(box)
    crashed = box.crash()
    if not has_queues:
        shutil.rmtree(crashed.root / "consumequeue")
    store = crashed.open()
    assert served(store, ("T", 0)) == NEW
    assert box.put(store).queue_offset == 3


def delete_as_rocketmq(root: Path, topic: str) -> None:
    """RocketMQ deletes a topic's queues, and writes nothing into the log."""
    for queue in (root / "consumequeue" / topic).iterdir():
        shutil.rmtree(queue)


@pytest.mark.parametrize("has_queues", [True, False], ids=["queues kept", "queues lost"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("messages", [3, 12, 40], ids=lambda count: f"{count} messages")
def test_a_log_of_rocketmq_tells_lives_apart_by_queue_offsets(
    box: StoreBox, messages: int, is_clean: bool, has_queues: bool
) -> None:
    """A life that begins in another segment than recovery is found, too."""
    store = box.open()
    for number in range(20):
        box.put(store, body=b"old%d" % number + bytes(4_000), at=box.now + 1_000)
    box.put(store, "Other")
    store.close()
    delete_as_rocketmq(box.root, "T")
    store = box.open()
    for number in range(messages):
        box.put(store, body=b"new%d" % number + bytes(4_000), at=box.now + 1_000)
    store.flush_all()
    if is_clean:
        store.close()
    crashed = box.crash()
    if not has_queues:
        shutil.rmtree(crashed.root / "consumequeue")
    found = served(crashed.open(), ("T", 0))
    assert found == [(number, b"new%d" % number + bytes(4_000)) for number in range(messages)]


def test_a_clean_start_brings_no_topic_back_that_rocketmq_has_deleted(box: StoreBox) -> None:
    """RocketMQ dispatches only what follows the newest entry of all queues (ReputMessageService)."""
    store = box.open()
    for number in range(5):
        box.put(store, body=b"old%d" % number, queue_id=number % 2)
        box.put(store, "Other")
    store.close()
    delete_as_rocketmq(box.root, "T")
    store = box.open()
    assert [store.max_offset("T", queue_id) for queue_id in (0, 1)] == [0, 0]
    assert box.put(store, body=b"new0", queue_id=1).queue_offset == 0
    store.close()
    store = box.open()
    assert served(store, ("T", 0)) == []
    assert served(store, ("T", 1)) == [(0, b"new0")]


def test_a_repeated_offset_in_a_log_of_rocketmq_is_ignored(box: StoreBox) -> None:
    """Only offset 0 begins a life: RocketMQ ignores every other offset that a queue already has."""
    data = b""
    for offset in (0, 1, 2, 2, 1, 3):
        data += encode_record(
            topic="T",
            stored_body=b"%d" % len(data),
            properties=b"",
            queue_id=0,
            queue_offset=offset,
            physical_offset=len(data),
            born_timestamp=box.now,
            born_host=bytes(8),
            store_timestamp=box.now,
            store_host=bytes(8),
        )
    (box.root / "commitlog").mkdir(parents=True)
    (box.root / "commitlog" / f"{0:020d}").write_bytes(data.ljust(65_536, b"\0"))
    (box.root / "abort").touch()
    assert [offset for offset, _ in served(box.open(), ("T", 0))] == [0, 1, 2, 3]
