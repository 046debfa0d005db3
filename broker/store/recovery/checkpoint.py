"""The ``checkpoint`` file: the store times up to which the files are durable.

Specification: docs/spec/store.md 6.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from rewindmq.broker.store.files.disk import Disk

_BYTES: Final = 4_096
_FIELDS: Final = struct.Struct(">qqq")
# Recovery starts this much earlier than the file says, in ms.
_MARGIN_MS: Final = 3_000


class StoreCheckpoint:
    """Three store times in ms: of the newest durable log record, queue entry and index entry."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self.physic_msg_timestamp = 0
        self.logics_msg_timestamp = 0
        self.index_msg_timestamp = 0

    def load(self) -> None:
        """Read the file; a missing or short file counts as zeros. Raise OSError if it cannot be read."""
        data = self._disk.read(self._path) or b""
        if len(data) >= _FIELDS.size:
            self.physic_msg_timestamp, self.logics_msg_timestamp, self.index_msg_timestamp = (
                _FIELDS.unpack_from(data)
            )

    @property
    def min_timestamp(self) -> int:
        """Store time, ms, up to which all messages and their queue entries are durable."""
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - _MARGIN_MS)

    def save(self) -> None:
        """Write the file durably and at once, so that a crash leaves the old or the new times.

        Raises:
            OSError: the disk fails.
        """
        fields = _FIELDS.pack(self.physic_msg_timestamp, self.logics_msg_timestamp, self.index_msg_timestamp)
        temporary = self._path.with_name(self._path.name + ".tmp")
        self._disk.write(temporary, fields.ljust(_BYTES, b"\0"))
        self._disk.replace(temporary, self._path)
