"""Computes tagsCode, the third field of a consume-queue entry (docs/spec/store.md 4.2)."""

from __future__ import annotations

import re
from typing import Final

from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.message.properties import (
    DELAY,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    TAGS,
    find_property,
)
from rewindmq.protocol.text import java_hash

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
_LEVEL: Final = re.compile(r"([0-9]{1,9})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNKNOWN_LEVEL_MS: Final = 1_000
_SEPARATOR: Final = PROPERTY_SEPARATOR.encode()
_TAGS: Final = f"{TAGS}{NAME_VALUE_SEPARATOR}".encode()


class DelayLevels:
    """The delays of ``messageDelayLevel``; level 1 is the first.

    Args:
        scale: factor for every delay: wall-clock seconds per second of the text.

    Raises:
        StoreError: a delay is not a number followed by s, m, h or d, or there are no delays.
    """

    def __init__(self, text: str, scale: float = 1.0) -> None:
        self.scale = scale
        self._delays_ms: list[int] = []
        for piece in text.split():
            match = _LEVEL.fullmatch(piece)
            if match is None:
                raise StoreError(f"messageDelayLevel: {piece!r} is not a number followed by s, m, h or d")
            self._delays_ms.append(round(int(match[1]) * _UNIT_MS[match[2]] * scale))
        if not self._delays_ms:
            raise StoreError("messageDelayLevel names no delay")

    @property
    def highest(self) -> int:
        """The number of the last level."""
        return len(self._delays_ms)

    def delay_ms(self, level: int) -> int:
        """Return the delay of a level from 1 to ``highest``, in wall-clock ms."""
        return self._delays_ms[level - 1]

    def delivery_time(self, level: int, store_timestamp: int) -> int:
        """Return when a message of ``level`` is due, ms. Levels above the last count as the last (4.9.4)."""
        if level > len(self._delays_ms):
            level = len(self._delays_ms)
        delay = self._delays_ms[level - 1] if level > 0 else round(_UNKNOWN_LEVEL_MS * self.scale)
        return store_timestamp + delay


class TagsCoder:
    """Computes tagsCode from a record, for entries rebuilt from the log and delayed messages."""

    def __init__(self, levels: DelayLevels) -> None:
        self._levels = levels

    def tags_code(self, topic: str, properties: bytes, store_timestamp: int) -> int:
        """Return the delivery time for the schedule topic, else the hash of TAGS, else 0."""
        if topic == SCHEDULE_TOPIC:
            level = find_property(properties.decode("utf-8", "replace"), DELAY)
            if level is not None and level.isascii() and level.isdigit() and int(level) > 0:
                return self._levels.delivery_time(int(level), store_timestamp)
        # Recovery calls this for each record: most need no text of all their properties.
        if _TAGS not in properties:
            return 0
        value_at = properties.rfind(_SEPARATOR + _TAGS) + len(_SEPARATOR + _TAGS)
        tags = properties[value_at:].partition(_SEPARATOR)[0].decode("utf-8", "replace")
        if value_at < len(_SEPARATOR + _TAGS) or not tags:
            tags = find_property(properties.decode("utf-8", "replace"), TAGS) or ""
        return java_hash(tags) if tags else 0
