"""Reads parts of a key index file: header, entries, positions of one key."""

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
from rewindmq.pipeline.files import ReadableFiles, check_kind
from rewindmq.pipeline.index_files.format import ENTRIES, read_header
from rewindmq.pipeline.index_files.slots import find_slots, has_slots

# If a key is on more messages than this, following its entries is not worth the reads.
_MAX_CHAIN: Final = 20_000

Entries = npt.NDArray[np.void]


class IndexReader:
    """One index file.

    Attributes:
        header: the header at the time the file was opened.
        slots: maxHashSlotNum of the broker that wrote the file.
    """

    def __init__(self, files: ReadableFiles, path: str, size: int, slots: int = 0) -> None:
        """
        Args:
            size: bytes of the file.
            slots: number of slots; 0 to detect it.

        Raises:
            PipelineError: the file does not have this many slots, or their number cannot be detected.
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
        """Number after the last entry."""
        return max(self.header.index_count, FIRST_ENTRY)

    def _find_slots(self, size: int, slots: int) -> int:
        if self.stop == FIRST_ENTRY:
            return slots or MAX_HASH_SLOT_NUM
        if slots:
            if has_slots(self._files, self.path, size, self.header, slots):
                return slots
            raise PipelineError(
                f"{self.path} does not have {slots} slots: set the option hashSlots to the broker's"
                " maxHashSlotNum"
            )
        if found := find_slots(self._files, self.path, size, self.header):
            return found
        raise PipelineError(
            f"cannot detect the number of slots of {self.path}: set the option hashSlots to the broker's"
            " maxHashSlotNum"
        )

    def _entry(self, number: int, slots: int) -> tuple[int, int, int, int]:
        at = HEADER_BYTES + slots * SLOT_BYTES + number * ENTRY_BYTES
        data = self._files.read(self.path, at, ENTRY_BYTES)
        return ENTRY.unpack(data) if len(data) == ENTRY_BYTES else (0, -1, 0, 0)

    def entries(self, first: int, stop: int) -> Entries:
        """Return the entries [first, stop), ``ENTRIES``."""
        at = HEADER_BYTES + self.slots * SLOT_BYTES + first * ENTRY_BYTES
        data: Any = self._files.read(self.path, at, (stop - first) * ENTRY_BYTES)
        return np.frombuffer(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES], ENTRIES)

    def positions(self, topic: str, key: str) -> list[int] | None:
        """Return the positions of messages with this key's hash; None if there are too many."""
        wanted = key_hash(topic, key)
        at = HEADER_BYTES + wanted % self.slots * SLOT_BYTES
        (number,) = SLOT.unpack(self._files.read(self.path, at, SLOT_BYTES))
        found: list[int] = []
        for _ in range(_MAX_CHAIN):
            if number < FIRST_ENTRY:
                return found
            # A slot may name an entry newer than the header that was read; its chain leads to the older ones.
            hashed, position, _, previous = self._entry(number, self.slots)
            if hashed == wanted:
                found.append(position)
            # The chain of an entry leads only to earlier entries.
            number = previous if previous < number else 0
        return None


def index_files(files: ReadableFiles, folder: str, slots: int) -> Iterator[IndexReader]:
    """Yield the index files of a folder that have entries, oldest first.

    Raises:
        PipelineError: an entry with such a name is not an index file.
    """
    for entry in files.list(folder):
        if entry.name.isdecimal():
            check_kind(entry, folder, needs_file=True)
            reader = IndexReader(files, f"{folder}/{entry.name}", entry.size, slots)
            if reader.stop > FIRST_ENTRY:
                yield reader
