"""After any sequence of puts, stops and crashes, the store equals a plain list."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store import (
    BatchEntry,
    GetMessageStatus,
    MessageStore,
    PutStatus,
    StoreConfig,
    StoredMessage,
)
from rewindmq.protocol.message.record import crc_ok, decode_records
from rewindmq.protocol.text import java_hash
from tests.broker.store.store_box import UnsyncedDisk
from tests.support.properties import few_and_all

CONFIG = StoreConfig(mapped_file_size_commit_log=8_192, mapped_file_size_consume_queue=200)
TOPICS = ("T", "%RETRY%G", "标签")
TAGS = ("TagA", "TagB")

QUEUES = st.tuples(st.sampled_from(TOPICS), st.integers(0, 1))
STEPS = st.one_of(
    st.tuples(st.just("put"), QUEUES, st.integers(0, 3_000), st.sampled_from(TAGS)),
    st.tuples(st.just("batch"), QUEUES, st.lists(st.integers(0, 400), min_size=1, max_size=12)),
    st.tuples(st.just("tick"), st.integers(0, 5_000)),
    st.tuples(st.sampled_from(["flush", "restart", "crash", "lose queues", "lose one queue"])),
)

Queue = tuple[str, int]
# Body, tag, store timestamp.
Stored = tuple[bytes, str | None, int]


class Model:
    """The store under test beside the lists it must equal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.generation = 0
        self.now = 1_000_000
        self.number = 0
        self.expected: dict[Queue, list[Stored]] = {}
        self.store = self.opened()

    @property
    def root(self) -> Path:
        return self.folder / str(self.generation)

    def opened(self) -> MessageStore:
        store = MessageStore(self.root, CONFIG, lambda: self.now, UnsyncedDisk())
        store.open()
        return store

    def body(self, size: int) -> bytes:
        self.number += 1
        return b"%d|" % self.number + b"z" * size

    def put(self, queue: Queue, size: int, tag: str) -> None:
        body = self.body(size)
        message = StoredMessage(queue[0], queue[1], body, b"TAGS\x01" + tag.encode(), java_hash(tag))
        result = self.store.put_message(message)
        messages = self.expected.setdefault(queue, [])
        assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, len(messages))
        messages.append((body, tag, self.now))

    def batch(self, queue: Queue, sizes: list[int]) -> None:
        bodies = [self.body(size) for size in sizes]
        result = self.store.put_batch(
            StoredMessage(queue[0], queue[1], b""), [BatchEntry(body, b"") for body in bodies]
        )
        messages = self.expected.setdefault(queue, [])
        assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, len(messages))
        messages += [(body, None, self.now) for body in bodies]

    def tick(self, milliseconds: int) -> None:
        self.now += milliseconds

    def flush(self) -> None:
        self.store.flush_all()

    def restart(self) -> None:
        self.store.close()
        self.store = self.opened()

    def crash(self) -> None:
        self.move(lambda queues: None)

    def lose_queues(self) -> None:
        self.move(lambda queues: shutil.rmtree(queues, ignore_errors=True))

    def lose_one_queue(self) -> None:
        """Its newest message is the log's newest; otherwise no start could detect the missing queue."""
        if self.expected:
            topic, queue_id = queue = min(self.expected)
            self.put(queue, 0, TAGS[0])
            self.move(lambda queues: shutil.rmtree(queues / topic / str(queue_id)))

    def move(self, damage: Callable[[Path], object]) -> None:
        """Leave the running store unchanged and continue with a copy of its files."""
        abandoned, source = self.store, self.root
        self.generation += 1
        shutil.copytree(source, self.root)
        abandoned.close()
        damage(self.root / "consumequeue")
        self.store = self.opened()

    def check(self) -> None:
        for queue, messages in self.expected.items():
            assert (self.store.min_offset(*queue), self.store.max_offset(*queue)) == (0, len(messages))
            assert self.read(queue, None) == messages
            tagged = [message for message in messages if message[1] == "TagA"]
            assert self.read(queue, frozenset((java_hash("TagA"),))) == tagged

    def read(self, queue: Queue, tag_codes: frozenset[int] | None) -> list[Stored]:
        found: list[Stored] = []
        offset = 0
        while offset < self.store.max_offset(*queue):
            result = self.store.get_message(*queue, offset, 5, tag_codes)
            assert result.status in (GetMessageStatus.FOUND, GetMessageStatus.NO_MATCHED_MESSAGE)
            for record in decode_records(result.body):
                assert crc_ok(record)
                assert (record.topic, record.queue_id) == queue
                found.append((record.stored_body, record.properties.get("TAGS"), record.store_timestamp))
            offset = result.next_begin_offset
        return found


@pytest.mark.parametrize("examples", few_and_all(8, 25))
@pytest.mark.parametrize("part", range(4))
def test_the_store_equals_its_model(
    tmp_path_factory: pytest.TempPathFactory, part: int, examples: int
) -> None:
    @settings(max_examples=examples)
    @given(st.lists(STEPS, min_size=part * 10, max_size=part * 10 + 12))
    def run(steps: list[tuple[Any, ...]]) -> None:
        model = Model(tmp_path_factory.mktemp("model"))
        try:
            for name, *arguments in steps:
                getattr(model, name.replace(" ", "_"))(*arguments)
            model.check()
            model.restart()
            model.check()
        finally:
            model.store.close()

    run()
