"""The progress of each delay level, in ``config/delayOffset.json`` (docs/spec/store.md 8.5)."""

from __future__ import annotations

from typing import Any

import msgspec

from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.store.tables.config_json import format_config


class DelayOffsets:
    """The table of RocketMQ 4.9.4 ``ScheduleMessageService``.

    Attributes:
        table: level to the next queue offset in the schedule topic. A level appears after its first delivery.
    """

    def __init__(self, file: ConfigFile) -> None:
        self._file = file
        self._saved: dict[int, int] = {}
        # Written by 5.x; preserved because the store may be opened by a 5.x broker again.
        self._version: Any = None
        self.table: dict[int, int] = {}

    def load(self) -> None:
        """Read the file.

        Raises:
            StoreError: if neither the file nor its backup can be read.
        """
        self._file.load(self._read)

    def _read(self, content: Any) -> None:
        self.table = msgspec.convert(content.get("offsetTable") or {}, dict[int, int], strict=False)
        self._saved = dict(self.table)
        self._version = content.get("dataVersion")

    @property
    def has_changed(self) -> bool:
        """True if the table differs from the file."""
        return self.table != self._saved

    def save(self, table: dict[int, int]) -> None:
        """Write a copy of ``table``; may run on a worker thread.

        Raises:
            StoreError: if the disk fails.
        """
        self._file.save(self._document(table))
        self._saved = table

    def text(self) -> str:
        """Return the present table as the file's text."""
        return format_config(self._document(self.table))

    def _document(self, table: dict[int, int]) -> dict[str, Any]:
        return {"dataVersion": self._version, "offsetTable": table}
