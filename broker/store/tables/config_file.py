"""A configuration file and its ``.bak`` copy, as in RocketMQ's ConfigManager (docs/spec/store.md 8.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import Disk, OsDisk
from rewindmq.broker.store.tables.config_json import format_config
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.errors import ResponseError, RewindMQError

T = TypeVar("T")
_log = logging.getLogger(__name__)
_OS_DISK: Final = OsDisk()
# Errors that a reader raises for JSON of the wrong shape.
_UNREADABLE: Final = (RewindMQError, ValueError, TypeError, KeyError, AttributeError, msgspec.MsgspecError)


class ConfigFile:
    """A JSON file; ``.bak`` holds the state before the last save.

    After a crash at any point, the file holds the new state or the one before: each file is complete and
    durable before it is renamed.
    """

    def __init__(self, path: Path, disk: Disk = _OS_DISK) -> None:
        self.path = path
        self._disk = disk
        self._backup = path.with_name(path.name + ".bak")
        self._temporary = path.with_name(path.name + ".tmp")
        # False if the file could not be read: then it must not replace a readable backup.
        self._is_worth_keeping = True

    def load(self, read: Callable[[Any], T]) -> T | None:
        """Return the content of the file, or of ``.bak`` if the file is missing, empty or unreadable.

        If the file is unreadable and there is no ``.bak``, 4.9.4 starts empty, but this method raises.

        Args:
            read: makes the state from the parsed JSON, which may have bare integer keys as RocketMQ writes
                them; raises ValueError, TypeError, KeyError or a msgspec error if the shape is wrong.

        Returns:
            None if neither file exists.

        Raises:
            StoreError: a file cannot be read; the text names it.
        """
        problems: list[str] = []
        for path in (self.path, self._backup):
            try:
                data = self._disk.read(path) or b""
                if data.strip():
                    state = read(fastjson.loads(data))
                    if path is self._backup:
                        self._tell_fallback(problems)
                    return state
            except OSError as error:
                problems.append(f"cannot read {path}: {error.strerror}")
            except _UNREADABLE as error:
                reason = error.remark if isinstance(error, ResponseError) else str(error)
                problems.append(f"cannot read {path}: {' '.join(reason.split())}")
            if path is self.path:
                self._is_worth_keeping = False
        if problems:
            raise StoreError("; ".join(problems))
        return None

    def _tell_fallback(self, problems: list[str]) -> None:
        reason = problems[0] if problems else f"{self.path} is missing or empty"
        _log.error("%s; using %s, which is one save older", reason, self._backup)

    def save(self, value: Any) -> None:
        """Write ``value`` (see ``format_config``). Raise StoreError on a disk error."""
        self.save_text(format_config(value))

    def save_text(self, text: str) -> None:
        """Write a text that ``load`` can read; may run on a worker thread.

        Raises:
            StoreError: the disk failed; the previous state can still be loaded.
        """
        try:
            self._disk.make_folder(self.path.parent)
            self._disk.write(self._temporary, text.encode())
            if self._is_worth_keeping and self._disk.exists(self.path):
                self._disk.replace(self.path, self._backup)
            self._disk.replace(self._temporary, self.path)
        except OSError as error:
            raise StoreError(f"cannot save {self.path}: {error.strerror}") from None
        self._is_worth_keeping = True
