"""Key index files as a job reads them: header, entries, positions of one key; never a file as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rewindmq.broker.store.index_layout import (
    ENTRY,
    ENTRY_BYTES,
    FIRST_ENTRY,
    HEADER_BYTES,
    MAX_HASH_SLOT_NUM,
    SLOT,
    SLOT_BYTES,
    file_bytes,
    key_hash,
)
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.index_format import ENTRIES, read_header

# RocketMQ's proportion of entries to slots.
_ENTRIES_PER_SLOT: Final = 4
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
            slots: 0 to find out from the size, which does not say it for unusual settings.

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
        guesses = (slots,) if slots else (_slots_of(size), MAX_HASH_SLOT_NUM)
        for guess in guesses:
            if guess > 0 and file_bytes(guess, self.stop) <= size and self._fits(guess):
                return guess
        raise PipelineError(
            f"{self.path} does not have {guesses[0]} slots: give maxHashSlotNum as option hashSlots"
        )

    def _fits(self, slots: int) -> bool:
        """Whether the first entry is where so many slots put it: it is the one that the header tells of."""
        _, position, _, previous = self._entry(FIRST_ENTRY, slots)
        return position == self.header.begin_phy_offset and previous == 0

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


def _slots_of(size: int) -> int:
    return (size - HEADER_BYTES) // (SLOT_BYTES + _ENTRIES_PER_SLOT * ENTRY_BYTES)


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
