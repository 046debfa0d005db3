"""Key index files as a job reads them: header, entries, positions of one key; never a file as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rewindmq.broker.store.layout.index import (
    ENTRY,
    ENTRY_BYTES,
    FIRST_ENTRY,
    HEADER_BYTES,
    MAX_HASH_SLOT_NUM,
    SLOT,
    SLOT_BYTES,
    key_hash,
)
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.index_files.format import ENTRIES, read_header
from rewindmq.pipeline.index_files.slots import find_slots, has_slots

# A key that is on so many messages is not worth following entry by entry.
_MAX_CHAIN: Final = 20_000

Entries = npt.NDArray[np.void]


class IndexReader:
    """One index file.

    Attributes:
        header: as it was when the file was looked at.
        slots: maxHashSlotNum of the broker that wrote it.
    """

    def __init__(self, files: ReadableFiles, path: str, size: int, slots: int = 0) -> None:
        """
        Args:
            size: bytes of the file.
            slots: 0 to find out.

        Raises:
            PipelineError: the file does not have that many slots, or it cannot be told how many.
        """
        self._files = files
        self.path = path
        self.header = read_header(files, path)
        self.slots = self._find_slots(size, slots)

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.rpartition("/")[2]

    @property
    def stop(self) -> int:
        """Number behind the last entry."""
        return max(self.header.index_count, FIRST_ENTRY)

    def _find_slots(self, size: int, slots: int) -> int:
        if self.stop == FIRST_ENTRY:
            return slots or MAX_HASH_SLOT_NUM
        if slots:
            if has_slots(self._files, self.path, size, self.header, slots):
                return slots
            raise PipelineError(
                f"{self.path} does not have {slots} slots: give maxHashSlotNum as option hashSlots"
            )
        if found := find_slots(self._files, self.path, size, self.header):
            return found
        raise PipelineError(
            f"{self.path} does not tell how many slots it has, its first entry is in no place that fits:"
            " give maxHashSlotNum as option hashSlots"
        )

    def _entry(self, number: int, slots: int) -> tuple[int, int, int, int]:
        at = HEADER_BYTES + slots * SLOT_BYTES + number * ENTRY_BYTES
        data = self._files.read(self.path, at, ENTRY_BYTES)
        return ENTRY.unpack(data) if len(data) == ENTRY_BYTES else (0, -1, 0, 0)

    def entries(self, first: int, stop: int) -> Entries:
        """The entries [first, stop), ``ENTRIES``."""
        at = HEADER_BYTES + self.slots * SLOT_BYTES + first * ENTRY_BYTES
        data: Any = self._files.read(self.path, at, (stop - first) * ENTRY_BYTES)
        return np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], ENTRIES)

    def positions(self, topic: str, key: str) -> list[int] | None:
        """Where messages of this key, or another of its hash, begin; None when there are too many to tell."""
        wanted = key_hash(topic, key)
        at = HEADER_BYTES + wanted % self.slots * SLOT_BYTES
        (number,) = SLOT.unpack(self._files.read(self.path, at, SLOT_BYTES))
        found: list[int] = []
        for _ in range(_MAX_CHAIN):
            if number < FIRST_ENTRY:
                return found
            # A slot may name entries that came after the header was read: the older ones are behind them.
            hashed, position, _, previous = self._entry(number, self.slots)
            if hashed == wanted:
                found.append(position)
            # An entry's chain leads to earlier ones only.
            number = previous if previous < number else 0
        return None


def index_files(files: ReadableFiles, folder: str, slots: int) -> Iterator[IndexReader]:
    """The index files of a folder that have entries, the oldest first.

    Raises:
        PipelineError: a file is no index file.
    """
    for entry in files.list(folder):
        if entry.is_file and entry.name.isdecimal():
            reader = IndexReader(files, f"{folder}/{entry.name}", entry.size, slots)
            if reader.stop > FIRST_ENTRY:
                yield reader
