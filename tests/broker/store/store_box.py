"""A store in a temporary directory: a clock that the test sets, 64 KiB segments, small queue files."""

from __future__ import annotations

import shutil
from pathlib import Path

from rewindmq.broker.store import (
    BatchEntry,
    MessageStore,
    PutResult,
    PutStatus,
    StoreConfig,
    StoredMessage,
    StoreError,
)
from rewindmq.broker.store.files.disk import Disk, OsDisk
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.text import java_hash

STORE_HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
SMALL = StoreConfig(mapped_file_size_commit_log=65_536, mapped_file_size_consume_queue=6_000)


class UnsyncedDisk(OsDisk):
    """Leaves it to the kernel when to write: for the many stores of a property test."""

    def sync(self, path: Path) -> None:
        pass

    def write(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)


class StoreBox:
    """One store directory that can be opened, closed, and copied as a crash would leave it."""

    def __init__(self, root: Path, config: StoreConfig = SMALL) -> None:
        self.root = root
        self.config = config
        self.now = 1_700_000_000_000
        self._opened: list[MessageStore] = []

    def open(
        self,
        disk: Disk | None = None,
        config: StoreConfig | None = None,
        store_host: bytes = STORE_HOST,
        *,
        writes_v2: bool = False,
    ) -> MessageStore:
        store = MessageStore(
            self.root,
            config or self.config,
            lambda: self.now,
            disk or OsDisk(),
            store_host=store_host,
            writes_v2=writes_v2,
        )
        store.open()
        self._opened.append(store)
        return store

    def crash(self, name: str = "crashed") -> StoreBox:
        """Return a copy of the files, including ``abort``, as a new process finds them after a kill."""
        root = self.root.with_name(name)
        shutil.copytree(self.root, root)
        box = StoreBox(root, self.config)
        box.now = self.now
        box._opened = self._opened
        return box

    def close_all(self) -> None:
        for store in self._opened:
            store.close()

    def put(
        self,
        store: MessageStore,
        topic: str = "T",
        queue_id: int = 0,
        body: bytes = b"hello",
        *,
        at: int | None = None,
        tag: str | None = None,
        sys_flag: int = 0,
    ) -> PutResult:
        if at is not None:
            self.now = at
        properties = format_properties({"TAGS": tag}).encode() if tag else b""
        tags_code = java_hash(tag) if tag else 0
        message = StoredMessage(topic, queue_id, body, properties, tags_code, sys_flag=sys_flag)
        result = store.put_message(message)
        assert result.status is PutStatus.PUT_OK
        return result

    def put_batch(self, store: MessageStore, bodies: list[bytes], topic: str = "T") -> PutResult:
        return store.put_batch(StoredMessage(topic, 0, b""), [BatchEntry(body, b"") for body in bodies])


def drop_segment(store: MessageStore, modified_before: int | None) -> bool:
    """Delete the first segment as ``Retention`` does; True if there was an expired one."""
    cleaner = store.cleaner
    segment = cleaner.take_segment(modified_before)
    if segment is None:
        return False
    try:
        cleaner.delete(segment)
    except StoreError:
        cleaner.put_back(segment)
        raise
    return True
