"""A table of configurations by name in a file under ``config/`` (RocketMQ ``ConfigManager``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Final, Generic, TypeVar

import msgspec

from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.store.tables.config_json import format_config
from rewindmq.broker.tables.unknown_fields import UnknownFields
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.registration import DataVersion

_VERSION: Final = "dataVersion"

Entry = TypeVar("Entry", bound=RemotingBody)


@dataclass(frozen=True, slots=True)
class TableContent(Generic[Entry]):
    """A snapshot of a table, which a worker thread writes while the table changes."""

    version: DataVersion
    entries: dict[str, Entry]
    unknown: UnknownFields


class ConfigTable(Generic[Entry]):
    """A table's entries and data version. A change takes effect at once; ``TableFlush`` writes it.

    Args:
        key: the field of the file that contains the entries.
        entry: the type of the entries.
        built_in: the broker's own entries; entries of the file replace them.
        on_unsaved: called after each change; starts a write.

    Attributes:
        data_version: a new object after each change.
        is_changed: True if something has changed since the last ``take``.
    """

    def __init__(
        self,
        file: ConfigFile,
        now_ms: Callable[[], int],
        *,
        key: str,
        entry: type[Entry],
        built_in: Mapping[str, Entry],
        on_unsaved: Callable[[], None],
    ) -> None:
        self._file = file
        self._now_ms = now_ms
        self._key = key
        self._table_type: Any = GenericAlias(dict, (str, entry))
        self._entries = dict(built_in)
        self._unknown = UnknownFields(key, entry)
        self.data_version = DataVersion(timestamp=now_ms())
        self.is_changed = False
        # Data version counter by name, for the entries changed since the file was written.
        self._unsaved: dict[str, int] = {}
        self._on_unsaved = on_unsaved

    def __len__(self) -> int:
        return len(self._entries)

    def load(self) -> None:
        """Read the file; its entries replace built-in entries of the same name.

        Raises:
            StoreError: if neither the file nor its backup can be read.
        """
        self._file.load(self._read)
        self._on_replaced()

    def _read(self, content: Any) -> None:
        entries: dict[str, Entry] = msgspec.convert(
            content.get(self._key) or {}, self._table_type, strict=False
        )
        version = content.get(_VERSION)
        if version:
            self.data_version = msgspec.convert(version, DataVersion, strict=False)
        self._unknown.note(content)
        self._entries.update(entries)

    def take(self) -> TableContent[Entry] | None:
        """Return a snapshot for ``save``; None if nothing has changed since the last call."""
        if not self.is_changed:
            return None
        self.is_changed = False
        return TableContent(self.data_version, dict(self._entries), self._unknown.copy())

    def is_saved(self, name: str) -> bool:
        """Return True if the file has the entry's current state."""
        return name not in self._unsaved

    def save(self, content: TableContent[Entry]) -> None:
        """Write the file; may run on a worker thread while the table changes.

        Raises:
            StoreError: the disk failed.
        """
        self._file.save(self._document(content))

    def _document(self, content: TableContent[Entry]) -> dict[str, Any]:
        document = {
            _VERSION: _to_file(content.version),
            self._key: {name: _to_file(entry) for name, entry in content.entries.items()},
        }
        return content.unknown.added_to(document)

    def text(self) -> str:
        """Return the present table as the file's text."""
        return format_config(self._document(TableContent(self.data_version, self._entries, self._unknown)))

    def settle(self, content: TableContent[Entry], *, is_written: bool) -> None:
        """Record the outcome of ``save``; if the disk failed, mark the table as changed again."""
        if not is_written:
            self.is_changed = True
            return
        newest = content.version.counter
        self._unsaved = {name: counter for name, counter in self._unsaved.items() if counter > newest}

    def persist(self) -> None:
        """Write the file if something has changed.

        Raises:
            StoreError: the disk failed; the next call tries again.
        """
        content = self.take()
        if content is None:
            return
        try:
            self.save(content)
        except BaseException:
            self.settle(content, is_written=False)
            raise
        self.settle(content, is_written=True)

    def _check_room(self, count: int) -> None:
        """Raise RequestError (SYSTEM_ERROR) if the table may not have more than ``count`` entries."""
        raise NotImplementedError

    def _on_replaced(self) -> None:
        """Called after the table is loaded, and after all of it is replaced."""

    def _on_put(self, name: str, entry: Entry | None) -> None:
        """Called after one entry has changed; None if it is removed."""

    def _update(self, name: str, entry: Entry) -> None:
        """Create or replace an entry.

        Raises:
            RequestError: SYSTEM_ERROR (1) if it is new and there are too many; nothing has changed.
        """
        self._update_all({name: entry})

    def _update_all(self, entries: Mapping[str, Entry]) -> None:
        """Create or replace several entries.

        Raises:
            RequestError: SYSTEM_ERROR (1) if some are new and there are too many; nothing has changed.
        """
        if not entries:
            return
        # A difference of the keys would go through the whole table.
        new = sum(name not in self._entries for name in entries)
        if new:
            self._check_room(len(self._entries) + new - 1)
        self._put(entries)

    def _put(self, changed: Mapping[str, Entry]) -> None:
        """Create or replace entries."""
        self._entries.update(changed)
        for name, entry in changed.items():
            self._on_put(name, entry)
        self._changed()
        self._unsaved.update(dict.fromkeys(changed, self.data_version.counter))
        self._on_unsaved()

    def delete(self, name: str) -> bool:
        """Remove an entry without notifying the name servers, as RocketMQ does; return False if unknown."""
        if name not in self._entries:
            return False
        del self._entries[name]
        self._unknown.drop(name)
        self._on_put(name, None)
        self._changed()
        self._on_unsaved()
        return True

    def _take_over(self, entries: Mapping[str, Entry], version: DataVersion) -> None:
        """Replace all entries by the master's, if its data version differs.

        Raises:
            RequestError: SYSTEM_ERROR (1) if there are too many; nothing has changed.
        """
        if version != self.data_version:
            self._check_room(len(entries) - 1)
            self._entries = dict(entries)
            # The master sends no unknown fields.
            self._unknown.forget()
            self._on_replaced()
            self._changed(version)
            self._on_unsaved()

    def _changed(self, version: DataVersion | None = None) -> None:
        if version is None:
            version = DataVersion(timestamp=self._now_ms(), counter=self.data_version.counter + 1)
        self.data_version = version
        self.is_changed = True


def _to_file(part: RemotingBody) -> dict[str, Any]:
    return {key: value for key, value in msgspec.to_builtins(part).items() if value is not None}


def ignore_unsaved() -> None:
    """Write nothing: the callers that change the table save it."""
