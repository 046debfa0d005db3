"""One key index file, mapped (docs/spec/store.md 5.1 to 5.5; 4.9.4 IndexFile)."""

from __future__ import annotations

import mmap
import sys
from array import array
from collections.abc import Generator
from pathlib import Path
from typing import Final

from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import DroppedFile, MappedFile, MmapCache
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.broker.store.layout.index import (
    ENTRY,
    ENTRY_BYTES,
    FIRST_ENTRY,
    HEADER,
    HEADER_BYTES,
    SLOT,
    SLOT_BYTES,
    file_bytes,
    time_diff,
)

# Disk blocks for entries are allocated ahead in steps of this many bytes. The blocks of all slots are
# allocated with the first entry, because slots are written in random order.
_ALLOCATION_BYTES: Final = 1_048_576
# Entries of a chain that ``select`` visits at once: about 1 ms.
_ENTRIES_PER_SLICE: Final = 1_000
# Slots read at once, in bytes.
_CHUNK_BYTES: Final = 65_536


class IndexFile:
    """Header, slots and entries. Times are in ms; an entry holds whole seconds since the first entry.

    Attributes:
        begin_timestamp, end_timestamp: store times of the first and the last message in it.
        begin_phy_offset, end_phy_offset: log positions of these two messages.
        index_count: number of the next entry; ``FIRST_ENTRY`` in an empty file.
    """

    def __init__(self, path: Path, slots: int, entries: int, disk: Disk, pool: MmapCache) -> None:
        self.path = path
        self._slots = slots
        self._entries = entries
        self._entries_at = HEADER_BYTES + slots * SLOT_BYTES
        self._disk = disk
        self._pool = pool
        self._file = MappedFile(pool, path, 0, file_bytes(slots, entries), 0)
        self.begin_timestamp = self.end_timestamp = 0
        self.begin_phy_offset = self.end_phy_offset = 0
        self.index_count = FIRST_ENTRY
        self._hash_slot_count = 0

    def read_header(self) -> bool:
        """Read the header; return False if it is invalid. Raise OSError if the file cannot be mapped."""
        fields = HEADER.unpack_from(self._file.open_map())
        self.begin_timestamp, self.end_timestamp, self.begin_phy_offset, self.end_phy_offset = fields[:4]
        self._hash_slot_count, count = fields[4:]
        # After a crash before the first entry, the header is all zeros.
        self.index_count = max(count, FIRST_ENTRY)
        return 0 <= count <= self._entries and 0 <= self._hash_slot_count <= self._slots

    def has_newer_slots(self) -> bool:
        """Return True if a slot names an entry that the header does not count.

        A power failure may keep a slot that was written after the last flush, and lose the header. The chain
        of older entries that the slot began is then lost. Raise OSError if the file cannot be mapped.
        """
        mapping = self._file.open_map()
        for at in range(HEADER_BYTES, self._entries_at, _CHUNK_BYTES):
            chunk = mapping[at : min(at + _CHUNK_BYTES, self._entries_at)]
            # Most slots of a young file are a hole.
            if chunk.strip(b"\0"):
                numbers = array("i", chunk)
                if sys.byteorder == "little":
                    numbers.byteswap()
                if max(numbers) >= self.index_count:
                    return True
        return False

    def begin_after(self, previous: IndexFile) -> None:
        """Copy the end of the previous file; the first entry replaces these values with its own."""
        self.begin_timestamp = self.end_timestamp = previous.end_timestamp
        self.begin_phy_offset = self.end_phy_offset = previous.end_phy_offset

    @property
    def is_full(self) -> bool:
        return self.index_count >= self._entries

    @property
    def is_empty(self) -> bool:
        return self.index_count <= FIRST_ENTRY

    def put(self, key_hash: int, physical_offset: int, store_timestamp: int) -> None:
        """Add one entry; the file must not be full. Raise OSError if the disk is full."""
        assert not self.is_full
        number = self.index_count
        at = self._entries_at + number * ENTRY_BYTES
        if self._file.allocated < at + ENTRY_BYTES:
            self._claim(at + ENTRY_BYTES)
        mapping = self._file.map or self._file.open_for_writing()
        slot_at = HEADER_BYTES + key_hash % self._slots * SLOT_BYTES
        header, slot = mapping[:HEADER_BYTES], mapping[slot_at : slot_at + SLOT_BYTES]
        (newest,) = SLOT.unpack(slot)
        is_new_slot = not 0 < newest <= number
        begin_timestamp, begin_phy_offset = self.begin_timestamp, self.begin_phy_offset
        seconds = time_diff(store_timestamp, begin_timestamp)
        if number <= FIRST_ENTRY:
            begin_timestamp, begin_phy_offset = store_timestamp, physical_offset
        ENTRY.pack_into(mapping, at, key_hash, physical_offset, seconds, 0 if is_new_slot else newest)
        SLOT.pack_into(mapping, slot_at, number)
        HEADER.pack_into(
            mapping,
            0,
            begin_timestamp,
            store_timestamp,
            begin_phy_offset,
            physical_offset,
            self._hash_slot_count + is_new_slot,
            number + 1,
        )
        if REFUSED_WRITES.error is not None:
            self._take_back(mapping, header, slot_at, slot)
        self._hash_slot_count += is_new_slot
        self.begin_timestamp, self.begin_phy_offset = begin_timestamp, begin_phy_offset
        self.end_phy_offset = physical_offset
        self.end_timestamp = store_timestamp
        self.index_count = number + 1
        self._file.mtime_ms = store_timestamp

    def _take_back(self, mapping: mmap.mmap, header: bytes, slot_at: int, slot: bytes) -> None:
        """Undo a write that the disk refused in part, and raise the error; nothing leads to the entry."""
        mapping[:HEADER_BYTES] = header
        mapping[slot_at : slot_at + SLOT_BYTES] = slot
        self._file.refuse_writes()
        REFUSED_WRITES.check()

    def _claim(self, end: int) -> None:
        file = self._file
        end = min(max(end, self._entries_at) + _ALLOCATION_BYTES, file.size)
        self._disk.allocate(file.path, file.allocated, end - file.allocated)
        file.allocated = end

    def overlaps(self, begin: int, end: int) -> bool:
        """Return True if a message stored in [begin, end] can be in the file."""
        return begin <= self.end_timestamp and end >= self.begin_timestamp

    def select(self, key_hash: int, max_count: int, begin: int, end: int) -> Generator[None, None, list[int]]:
        """Yield after about 1 ms of work; return the log positions under a hash, newest first.

        Only entries with a time in [begin, end] are included. The file may grow or be deleted meanwhile.
        """
        found: list[int] = []
        mapping = self._file.map or self._file.open_map()
        (number,) = SLOT.unpack_from(mapping, HEADER_BYTES + key_hash % self._slots * SLOT_BYTES)
        # A chain goes from newer to older entries; anything else is damage and ends it.
        bound = self.index_count
        visited = 0
        while len(found) < max_count and 0 < number < bound:
            bound = number
            visited += 1
            if visited % _ENTRIES_PER_SLICE == 0:
                yield
            entry = ENTRY.unpack_from(mapping, self._entries_at + number * ENTRY_BYTES)
            entry_hash, physical_offset, seconds, number = entry
            if seconds < 0:
                break
            time = self.begin_timestamp + seconds * 1_000
            if entry_hash == key_hash and begin <= time <= end:
                found.append(physical_offset)
            if time < begin:
                break
        return found

    def entries_of_last(self) -> int:
        """Return the number of entries of the last message in the file."""
        mapping = self._file.map or self._file.open_map()
        number = self.index_count
        while number > FIRST_ENTRY:
            entry = ENTRY.unpack_from(mapping, self._entries_at + (number - 1) * ENTRY_BYTES)
            if entry[1] != self.end_phy_offset:
                break
            number -= 1
        return self.index_count - number

    def flush(self) -> None:
        """Make the file durable; may run on a worker thread. Raise OSError on a disk error."""
        self._disk.sync(self.path)
        self._file.save_mtime(self._disk)

    def take(self) -> DroppedFile:
        """Stop using the file; the caller deletes it."""
        return DroppedFile(self._file, self._pool, self._disk)

    def remove(self) -> None:
        """Delete the file. Raise OSError on a disk error."""
        self.take().remove()
