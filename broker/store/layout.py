"""Paths of a store, and the layouts that are recognised only to be refused (``store.md`` 1)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from rewindmq.broker.store.errors import StoreError

_ROCKSDB_FILE: Final = re.compile(r"CURRENT|IDENTITY|MANIFEST-.*|OPTIONS-.*|.*\.sst")
_ROCKSDB_CONFIG: Final = ("topics", "subscriptionGroups", "consumerOffsets", "rdb")


class StoreLayout:
    """Where everything lies under ``storePathRootDir``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commit_log = root / "commitlog"
        self.consume_queue = root / "consumequeue"
        self.config = root / "config"
        self.checkpoint = root / "checkpoint"
        self.abort = root / "abort"
        self.lock = root / "lock"

    def check(self) -> None:
        """Look for layouts that this store cannot read.

        Raises:
            StoreError: a Raft (DLedger) log, or RocksDB in place of consume queues or configuration.
        """
        for path in self.root.glob("dledger-*"):
            raise StoreError(f"{path} is a DLedger (Raft) commit log, which is not supported")
        if self.consume_queue.is_dir():
            for path in self.consume_queue.iterdir():
                if path.is_file() and _ROCKSDB_FILE.fullmatch(path.name):
                    raise StoreError(
                        f"{self.consume_queue} is a RocksDB consume queue, which is not supported"
                    )
        for name in _ROCKSDB_CONFIG:
            if (self.config / name).is_dir():
                raise StoreError(f"{self.config / name} is RocksDB configuration, which is not supported")
