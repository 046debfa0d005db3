"""Consumer offsets: what each group has consumed of each queue (``behaviour.md`` B.8, ``store.md`` 8.4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rewindmq.broker.store.config_file import ConfigFile
from rewindmq.broker.store.config_json import format_config
from rewindmq.broker.store.disk import Disk, OsDisk
from rewindmq.broker.store.errors import StoreError

NO_OFFSET: Final = -1
# RocketMQ has no bound, and takes any topic, group and queue id (4.x).
MAX_OFFSETS: Final = 500_000
_SEPARATOR: Final = "@"
_OS_DISK: Final = OsDisk()


class ConsumerOffsetTable:
    """``topic@group`` to queue to next offset to consume (ConsumerOffsetManager). The last writer wins."""

    def __init__(self, path: Path, disk: Disk = _OS_DISK) -> None:
        self._file = ConfigFile(path, disk)
        self._offsets: dict[str, dict[int, int]] = {}
        self._count = 0
        self._is_saved = True

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Store an offset, whatever was there.

        Returns:
            The offset before, ``NO_OFFSET`` when there was none; RocketMQ warns when it was greater.

        Raises:
            StoreError: there are ``MAX_OFFSETS`` and none for this queue; nothing has changed.
        """
        key = topic + _SEPARATOR + group
        offsets = self._offsets.get(key)
        previous = NO_OFFSET if offsets is None else offsets.get(queue_id, NO_OFFSET)
        if previous == offset:
            return previous
        if offsets is None or queue_id not in offsets:
            if self._count >= MAX_OFFSETS:
                raise StoreError(f"there are {MAX_OFFSETS} consumer offsets already")
            self._count += 1
            offsets = self._offsets.setdefault(key, {})
        offsets[queue_id] = offset
        self._is_saved = False
        return previous

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """The offset stored, ``NO_OFFSET`` when there is none."""
        offsets = self._offsets.get(topic + _SEPARATOR + group)
        return NO_OFFSET if offsets is None else offsets.get(queue_id, NO_OFFSET)

    def offsets_of(self, group: str, topic: str) -> dict[int, int]:
        """Queue to offset, a copy; empty when the group has none for the topic."""
        return dict(self._offsets.get(topic + _SEPARATOR + group, ()))

    def topics_of(self, group: str) -> list[str]:
        """Topics the group has offsets for. A key with a second ``@`` belongs to nobody, as in RocketMQ."""
        return [
            parts[0]
            for parts in (key.split(_SEPARATOR) for key in self._offsets)
            if len(parts) == 2 and parts[1] == group
        ]

    def groups_of(self, topic: str) -> list[str]:
        """Groups that have offsets for the topic."""
        return [
            parts[1]
            for parts in (key.split(_SEPARATOR) for key in self._offsets)
            if len(parts) == 2 and parts[0] == topic
        ]

    def load(self) -> None:
        """Read the file, see ``ConfigFile.load``. StoreError when it cannot be read."""
        self._offsets = self._file.load(_read_table) or {}
        self._count = sum(map(len, self._offsets.values()))
        self._is_saved = True

    def persist(self) -> bool:
        """Write the file if anything changed since it was last written.

        Returns:
            Whether it was written.

        Raises:
            StoreError: the disk refused; the next call tries again.
        """
        text = self.take_text()
        if text is None:
            return False
        self.save_text(text)
        return True

    def take_text(self) -> str | None:
        """What ``save_text`` is to write, None when nothing changed since this was last asked."""
        if self._is_saved:
            return None
        self._is_saved = True
        return format_config({"offsetTable": self._offsets})

    def save_text(self, text: str) -> None:
        """Write the file; may run on a worker thread while offsets are stored.

        Raises:
            StoreError: the disk refused; the offsets count as changed again.
        """
        try:
            self._file.save_text(text)
        except BaseException:
            self._is_saved = False
            raise


def _read_table(document: Any) -> dict[str, dict[int, int]]:
    """The table in a parsed file; keys that other versions add are passed over."""
    table = document.get("offsetTable") or {}
    return {key: _read_offsets(offsets) for key, offsets in table.items()}


def _read_offsets(offsets: Mapping[Any, Any]) -> dict[int, int]:
    read = {}
    for queue_id, offset in offsets.items():
        if type(offset) is not int:
            raise ValueError(f"offset {offset!r} of queue {queue_id} is not a whole number")
        read[int(queue_id)] = offset
    return read
