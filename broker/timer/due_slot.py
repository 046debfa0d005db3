"""The delivery of one slot of the timer wheel, in steps."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from rewindmq.broker.store.layout.timer import MAGIC_DELETE, MAGIC_ROLL
from rewindmq.broker.store.timer.log import Unit

# Units that are read in one step: below 2 ms.
_UNITS_PER_STEP: Final = 1_000


class DueSlot:
    """The messages of a slot: some 17 bytes for each.

    RocketMQ's order (``TimerMessageStore#dequeue``): first the messages that delete others of this slot, then
    the others as they were stored.

    Args:
        units: of the slot, the last first.

    Attributes:
        time_ms: the slot's time.
        deleted: keys of the messages that are deleted.
    """

    def __init__(self, time_ms: int, units: Iterator[Unit]) -> None:
        self.time_ms = time_ms
        self.deleted: set[str] = set()
        self._units: Iterator[Unit] | None = units
        self._deletes = array("q")
        self._positions = array("q")
        self._write_times = array("q")
        self._rolls = bytearray()

    @property
    def is_read(self) -> bool:
        """True if ``collect`` has read all units."""
        return self._units is None

    def collect(self) -> bool:
        """Read some units; return True if there are no more. Raise OSError if they cannot be read."""
        if self._units is None:
            return True
        for _ in range(_UNITS_PER_STEP):
            unit = next(self._units, None)
            if unit is None:
                self._units = None
                return True
            if unit.magic & MAGIC_DELETE and not unit.magic & MAGIC_ROLL:
                self._deletes.append(unit.position)
            else:
                self._positions.append(unit.position)
                self._write_times.append(unit.write_ms)
                self._rolls.append(1 if unit.magic & MAGIC_ROLL else 0)
        return False

    @property
    def next_delete(self) -> int | None:
        """Log position of the next message that deletes another; None if there is none left."""
        return self._deletes[-1] if self._deletes else None

    def drop_delete(self) -> None:
        """Pass to the next of these messages."""
        self._deletes.pop()

    @property
    def next_message(self) -> tuple[int, int, bool] | None:
        """Log position and write time of the next message, and whether it is rolled; None at the end."""
        if not self._positions:
            return None
        return self._positions[-1], self._write_times[-1], bool(self._rolls[-1])

    def drop_message(self) -> None:
        """Pass to the next message."""
        self._positions.pop()
        self._write_times.pop()
        self._rolls.pop()
