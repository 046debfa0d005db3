"""A configuration file with its ``.bak``: RocketMQ's ConfigManager (docs/spec/store.md 8.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from rewindmq.broker.store.config_json import format_config
from rewindmq.broker.store.disk import Disk, OsDisk
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol import fastjson
from rewindmq.protocol.errors import ResponseError, RewindMQError

T = TypeVar("T")
_log = logging.getLogger(__name__)
_OS_DISK: Final = OsDisk()
# What a reader raises for JSON of the wrong shape.
_UNREADABLE: Final = (RewindMQError, ValueError, TypeError, KeyError, AttributeError, msgspec.MsgspecError)


class ConfigFile:
    """One JSON file; the state before the last save stays beside it as ``.bak``.

    A crash at any point leaves the new state or the one before: each file is complete and durable before it
    gets its name.
    """

    def __init__(self, path: Path, disk: Disk = _OS_DISK) -> None:
        self.path = path
        self._disk = disk
        self._backup = path.with_name(path.name + ".bak")
        self._temporary = path.with_name(path.name + ".tmp")
        # A file that could not be read must not replace a backup that could.
        self._is_worth_keeping = True

    def load(self, read: Callable[[Any], T]) -> T | None:
        """The file's content, or that of ``.bak`` where the file is missing, empty or unreadable.

        4.9.4 starts empty when the file is unreadable and there is no ``.bak``; this refuses.

        Args:
            read: makes the state from the parsed JSON (RocketMQ's kind: bare integer keys are fine); raises
                ValueError, TypeError, KeyError or a msgspec error where the shape is wrong.

        Returns:
            None when there is neither file.

        Raises:
            StoreError: names the file that cannot be read.
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
        _log.error("%s; going on with %s, which is one save older", reason, self._backup)

    def save(self, value: Any) -> None:
        """Write ``value`` (see ``format_config``). StoreError when the disk refuses."""
        self.save_text(format_config(value))

    def save_text(self, text: str) -> None:
        """Write a text that ``load`` can read; may run on a worker thread.

        Raises:
            StoreError: the disk refused; the state before can still be loaded.
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
