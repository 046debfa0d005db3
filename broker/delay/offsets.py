"""How far each delay level has been delivered, in ``config/delayOffset.json`` (docs/spec/store.md 8.5)."""

from __future__ import annotations

from typing import Any

import msgspec

from rewindmq.broker.store.config_file import ConfigFile


class DelayOffsets:
    """RocketMQ 4.9.4 ``ScheduleMessageService``'s table.

    Attributes:
        table: by level, the queue offset in the schedule topic that is looked at next. A level appears when
            it has delivered something.
    """

    def __init__(self, file: ConfigFile) -> None:
        self._file = file
        self._saved: dict[int, int] = {}
        # Written by 5.x, and of no use here but to it.
        self._version: Any = None
        self.table: dict[int, int] = {}

    def load(self) -> None:
        """Take over what the file holds.

        Raises:
            StoreError: neither the file nor its backup can be read.
        """
        self._file.load(self._read)

    def _read(self, content: Any) -> None:
        self.table = msgspec.convert(content.get("offsetTable") or {}, dict[int, int], strict=False)
        self._saved = dict(self.table)
        self._version = content.get("dataVersion")

    @property
    def has_changed(self) -> bool:
        """Whether something is not in the file."""
        return self.table != self._saved

    def save(self, table: dict[int, int]) -> None:
        """Write a copy of ``table``; may run on a worker thread.

        Raises:
            StoreError: the disk refused.
        """
        self._file.save({"dataVersion": self._version, "offsetTable": table})
        self._saved = table
