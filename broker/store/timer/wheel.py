"""The timer wheel: one slot for each second (``timerPrecisionMs``) in which messages are due.

Source: RocketMQ 5.5.1 ``TimerWheel``. Changed: a delivered slot is cleared, so the wheel knows the next slot
that has messages, without looking at the empty ones. RocketMQ reads a cleared slot as an empty one.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.broker.store.layout.timer import NO_UNIT, SLOT, SLOT_BYTES

# Slots whose bytes are written to the file together.
_PAGE_SLOTS: Final = 128
_PAGE_BYTES: Final = _PAGE_SLOTS * SLOT_BYTES
_CLEARED: Final = bytes(SLOT_BYTES)


class Slot(NamedTuple):
    """The messages that are due in one second.

    Attributes:
        first, last: positions of the first and last unit in the timer log.
        size: number of messages; a message that deletes another counts -1.
    """

    first: int
    last: int
    size: int


class TimerWheel:
    """The slots in memory. The pages of a slot without messages take none.

    Args:
        slots: number of slots of half a wheel.
        precision_ms: length of a slot.
    """

    def __init__(self, path: Path, slots: int, precision_ms: int, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._slots = slots * 2
        self._precision_ms = precision_ms
        self._bytes = self._slots * SLOT_BYTES
        # Made with the first message: brokers without timers need no memory for them.
        self._memory: mmap.mmap | None = None
        # One byte for each slot, 1 if it has messages; ``find`` passes over the empty ones.
        self._taken = bytearray()
        self._changed: set[int] = set()
        self.count = 0

    def load(self) -> bool:
        """Read the file; return False if it is missing or has another size. Raise OSError on failure."""
        entries = {entry.path: entry.size for entry in self._disk.list_folder(self._path.parent)}
        if entries.get(self._path) != self._bytes:
            return False
        mapping = self._disk.map_to_read(self._path, self._bytes)
        memory = self._open()
        at = self._disk.data_beyond(self._path, 0)
        while 0 <= at < self._bytes:
            start = at // _PAGE_BYTES * _PAGE_BYTES
            page = mapping[start : start + _PAGE_BYTES]
            if page.strip(b"\0"):
                memory[start : start + len(page)] = page
                self._note_page(start // SLOT_BYTES, page)
            at = self._disk.data_beyond(self._path, start + _PAGE_BYTES)
        return True

    def _note_page(self, first: int, page: bytes) -> None:
        for place, (number, _, last, count, _) in enumerate(SLOT.iter_unpack(page)):
            if number > 0 and last != NO_UNIT and number % self._slots == first + place:
                self._taken[first + place] = 1
                self.count += count

    def clear(self) -> None:
        """Forget all slots; the next ``pages`` are the whole wheel's."""
        if self._memory is not None:
            self._changed.update(range(-(-self._slots // _PAGE_SLOTS)))
            self._memory = mmap.mmap(-1, self._bytes)
            self._taken = bytearray(self._slots)
        self.count = 0

    def _open(self) -> mmap.mmap:
        if self._memory is None:
            self._memory = mmap.mmap(-1, self._bytes)
            self._taken = bytearray(self._slots)
        return self._memory

    # Slots

    def slot(self, time_ms: int) -> Slot | None:
        """Return the slot of a time; None if it has no messages."""
        number = time_ms // self._precision_ms
        place = number % self._slots
        if self._memory is None or not self._taken[place]:
            return None
        found, first, last, count, _ = SLOT.unpack_from(self._memory, place * SLOT_BYTES)
        return Slot(first, last, count) if found == number else None

    def is_blocked(self, time_ms: int) -> bool:
        """Return True if the place of a time's slot holds the messages of another time."""
        place = time_ms // self._precision_ms % self._slots
        return bool(self._taken) and bool(self._taken[place]) and self.slot(time_ms) is None

    def put(self, time_ms: int, position: int, added: int) -> None:
        """Note a unit of the timer log as its slot's last.

        Args:
            added: 1, or -1 for a message that deletes another.
        """
        memory = self._open()
        number = time_ms // self._precision_ms
        place = number % self._slots
        old = self.slot(time_ms)
        first, count = (position, 0) if old is None else (old.first, old.size)
        SLOT.pack_into(memory, place * SLOT_BYTES, number, first, position, count + added, 0)
        self._taken[place] = 1
        self._changed.add(place // _PAGE_SLOTS)
        self.count += added

    def end(self, time_ms: int, slot: Slot) -> None:
        """Replace a slot whose last units are not there."""
        place = time_ms // self._precision_ms % self._slots
        old = self.slot(time_ms)
        assert old is not None
        assert self._memory is not None
        SLOT.pack_into(
            self._memory,
            place * SLOT_BYTES,
            time_ms // self._precision_ms,
            slot.first,
            slot.last,
            slot.size,
            0,
        )
        self._changed.add(place // _PAGE_SLOTS)
        self.count += slot.size - old.size

    def remove(self, time_ms: int) -> None:
        """Clear the slot of a time: its messages are delivered."""
        old = self.slot(time_ms)
        if old is None or self._memory is None:
            return
        place = time_ms // self._precision_ms % self._slots
        self._memory[place * SLOT_BYTES : (place + 1) * SLOT_BYTES] = _CLEARED
        self._taken[place] = 0
        self._changed.add(place // _PAGE_SLOTS)
        self.count -= old.size

    def next_time(self, time_ms: int) -> int | None:
        """Return the time of the first slot with messages from ``time_ms`` on; None if there is none.

        A slot that is more than a wheel's length away counts as one that was missed: it comes in its place.
        """
        if self._memory is None:
            return None
        start = time_ms // self._precision_ms % self._slots
        place = self._taken.find(1, start)
        if place < 0:
            place = self._taken.find(1, 0, start)
        if place < 0:
            return None
        (number,) = SLOT.unpack_from(self._memory, place * SLOT_BYTES)[:1]
        return int(number) * self._precision_ms

    def times(self) -> Iterable[int]:
        """Return the times of all slots with messages, in no order."""
        place = -1
        while self._memory is not None and (place := self._taken.find(1, place + 1)) >= 0:
            yield int(SLOT.unpack_from(self._memory, place * SLOT_BYTES)[0]) * self._precision_ms

    # Saving

    @property
    def has_changed(self) -> bool:
        """True if ``take_pages`` would return pages."""
        return bool(self._changed)

    def take_pages(self) -> list[tuple[int, bytes]]:
        """Return the pages changed since the last call, with their positions in the file."""
        if self._memory is None:
            return []
        changed, self._changed = self._changed, set()
        return [
            (start, self._memory[start : start + _PAGE_BYTES])
            for start in sorted(page * _PAGE_BYTES for page in changed)
        ]

    def keep(self, pages: Iterable[tuple[int, bytes]]) -> None:
        """Take back pages that could not be saved."""
        self._changed.update(start // _PAGE_BYTES for start, _ in pages)

    def save(self, pages: list[tuple[int, bytes]]) -> None:
        """Write pages into the file durably; may run on a worker thread.

        Raises:
            OSError: the disk fails, or is full.
        """
        if not pages:
            return
        disk, path = self._disk, self._path
        entries = {entry.path: entry.size for entry in disk.list_folder(path.parent)}
        if entries.get(path) != self._bytes:
            disk.remove(path)
            disk.create(path, self._bytes)
        for start, page in pages:
            disk.allocate(path, start, len(page))
        mapping = disk.map(path, self._bytes)
        for start, page in pages:
            mapping[start : start + len(page)] = page
        REFUSED_WRITES.check()
        disk.sync(path)
