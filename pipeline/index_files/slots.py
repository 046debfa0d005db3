"""Detects how many slots an index file has; the header does not state it, and brokers may set any number.

The first entry comes after the slots, so the detection searches for the first entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
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
    file_bytes,
)
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.index_files.format import IndexHeader

# RocketMQ's ratio of entries to slots.
_ENTRIES_PER_SLOT: Final = 4
# Slot counts, and so possible starts of the entries, that are checked at a time.
_CHUNK_SLOTS: Final = 1 << 18
_ENTRY_SLOTS: Final = ENTRY_BYTES // SLOT_BYTES
# Following a chain ends after this many entries, because a key may be on every message. So many entries of
# one slot, each before its successor, are no accident.
_ENOUGH_LINKS: Final = 64

_Words = npt.NDArray[np.int32]


def find_slots(files: ReadableFiles, path: str, size: int, header: IndexHeader) -> int:
    """Return the number of slots of a file that has entries; 0 if it cannot be detected.

    Args:
        size: bytes of the file.
    """
    file = _File(files, path, size, header)
    usual = [slots for slots in (_usual_slots(size), MAX_HASH_SLOT_NUM) if file.may_have(slots)]
    # Confirmed candidates come before unconfirmed ones: other places may hold the same values as the header
    # states for the first entry.
    for slots in chain(usual, file.candidates()):
        if file.leads_to_first(slots):
            return slots
    return usual[0] if usual else 0


def has_slots(files: ReadableFiles, path: str, size: int, header: IndexHeader, slots: int) -> bool:
    """Whether the first entry matches the header if the file has ``slots`` slots."""
    return _File(files, path, size, header).may_have(slots)


def _usual_slots(size: int) -> int:
    return (size - HEADER_BYTES) // (SLOT_BYTES + _ENTRIES_PER_SLOT * ENTRY_BYTES)


class _File:
    def __init__(self, files: ReadableFiles, path: str, size: int, header: IndexHeader) -> None:
        self._files = files
        self._path = path
        self._size = size
        self._header = header

    def may_have(self, slots: int) -> bool:
        """Whether a possible first entry exists."""
        if slots <= 0 or file_bytes(slots, self._header.index_count) > self._size:
            return False
        _, position, _, previous = self._entry(slots, FIRST_ENTRY)
        return position == self._header.begin_phy_offset and previous == 0

    def leads_to_first(self, slots: int) -> bool:
        """Whether the slot's chain leads to the possible first entry; a long chain counts without its end."""
        hashed, *_ = self._entry(slots, FIRST_ENTRY)
        if hashed < 0:
            return False
        slot = hashed % slots
        (number,) = SLOT.unpack(self._files.read(self._path, HEADER_BYTES + slot * SLOT_BYTES, SLOT_BYTES))
        for _ in range(_ENOUGH_LINKS):
            if number == FIRST_ENTRY:
                return True
            # Entries may have been added after the header was read.
            if number < FIRST_ENTRY or file_bytes(slots, number + 1) > self._size:
                return False
            hashed, _, _, previous = self._entry(slots, number)
            if hashed % slots != slot or previous >= number:
                return False
            number = previous
        return True

    def candidates(self) -> Iterator[int]:
        """Yield possible numbers of slots, lowest first.

        The first and the last entry match the header, and no entry precedes the first.
        """
        header = self._header
        most = (self._size - HEADER_BYTES - header.index_count * ENTRY_BYTES) // SLOT_BYTES
        # The file ends with the last entry's place. So its size gives the number of slots modulo the size of
        # an entry.
        step = (self._size - HEADER_BYTES) // SLOT_BYTES % _ENTRY_SLOTS
        further = (header.index_count - 1) * _ENTRY_SLOTS
        for start in range(0, most + 1, _CHUNK_SLOTS):
            count = min(_CHUNK_SLOTS, most + 1 - start)
            unused = self._words(start, count + 2 * _ENTRY_SLOTS)
            last = self._words(start + further, count + _ENTRY_SLOTS)
            first = unused[_ENTRY_SLOTS:]
            fits = _has_position(first, header.begin_phy_offset, count)
            fits &= _has_position(last, header.end_phy_offset, count)
            # Key hash, and the previous entry of the slot.
            fits &= (first[:count] != 0) & (first[4 : 4 + count] == 0)
            for word in range(_ENTRY_SLOTS):
                fits &= unused[word : word + count] == 0
            slots = start + np.flatnonzero(fits)
            yield from slots[(slots > 0) & (slots % _ENTRY_SLOTS == step)].tolist()

    def _words(self, first: int, count: int) -> _Words:
        data = self._files.read(self._path, HEADER_BYTES + first * SLOT_BYTES, count * SLOT_BYTES)
        words: _Words = np.zeros(count, np.int32)
        found: Any = np.frombuffer(data[: len(data) // SLOT_BYTES * SLOT_BYTES], ">i4")
        words[: len(found)] = found
        return words

    def _entry(self, slots: int, number: int) -> tuple[int, int, int, int]:
        at = HEADER_BYTES + slots * SLOT_BYTES + number * ENTRY_BYTES
        data = self._files.read(self._path, at, ENTRY_BYTES)
        return ENTRY.unpack(data) if len(data) == ENTRY_BYTES else (-1, -1, 0, 0)


def _has_position(entries: _Words, position: int, count: int) -> npt.NDArray[np.bool_]:
    """Return whether an entry at each of the first ``count`` words would have this log position."""
    high, low = np.frombuffer(position.to_bytes(8, signed=True), ">i4")
    found: npt.NDArray[np.bool_] = (entries[1 : 1 + count] == high) & (entries[2 : 2 + count] == low)
    return found
