"""Paths of a store, and detection of unsupported layouts (docs/spec/store.md 1)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.layout.compaction import FOLDER as COMPACTION_FOLDER
from rewindmq.broker.store.layout.known_end import KNOWN_END_FILE
from rewindmq.broker.store.layout.time_index import FOLDER as TIME_INDEX_FOLDER

_ROCKSDB_FILE: Final = re.compile(r"CURRENT|IDENTITY|MANIFEST-.*|OPTIONS-.*|.*\.sst")
_ROCKSDB_CONFIG: Final = ("topics", "subscriptionGroups", "consumerOffsets", "rdb")


class StoreLayout:
    """The files and folders under ``storePathRootDir``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commit_log = root / "commitlog"
        self.consume_queue = root / "consumequeue"
        self.compaction = root / COMPACTION_FOLDER
        self.index = root / "index"
        self.time_index = root / TIME_INDEX_FOLDER
        self.config = root / "config"
        self.checkpoint = root / "checkpoint"
        self.abort = root / "abort"
        self.lock = root / "lock"
        self.known_end = root / KNOWN_END_FILE

    def check(self, disk: Disk) -> None:
        """Raise an error if the folder has a layout that this store cannot read.

        Raises:
            StoreError: a Raft (DLedger) log, or RocksDB in place of consume queues or configuration.
        """
        for entry in disk.list_folder(self.root):
            if entry.path.name.startswith("dledger-"):
                raise StoreError(f"{entry.path} is a DLedger (Raft) commit log, which is not supported")
        for entry in disk.list_folder(self.consume_queue):
            if entry.is_file and _ROCKSDB_FILE.fullmatch(entry.path.name):
                raise StoreError(f"{self.consume_queue} is a RocksDB consume queue, which is not supported")
        for name in _ROCKSDB_CONFIG:
            if disk.is_folder(self.config / name):
                raise StoreError(f"{self.config / name} is RocksDB configuration, which is not supported")
