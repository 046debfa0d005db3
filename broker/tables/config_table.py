"""A table of configurations by name in a file under ``config/`` (RocketMQ ``ConfigManager``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Any, Final, Generic, TypeVar

import msgspec

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.unknown_fields import UnknownFields
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

_VERSION: Final = "dataVersion"

Entry = TypeVar("Entry", bound=RemotingBody)


class ConfigTable(Generic[Entry]):
    """The entries and their data version; a change is written to disk before it is visible.

    Args:
        key: the field of the file that contains the entries.
        entry: the type of the entries.
        built_in: the broker's own entries; entries of the file replace them.

    Attributes:
        data_version: a new object after each change.
    """

    def __init__(
        self,
        file: ConfigFile,
        now_ms: Callable[[], int],
        *,
        key: str,
        entry: type[Entry],
        built_in: Mapping[str, Entry],
    ) -> None:
        self._file = file
        self._now_ms = now_ms
        self._key = key
        self._table_type: Any = GenericAlias(dict, (str, entry))
        self._entries = dict(built_in)
        self._unknown = UnknownFields(key, entry)
        self.data_version = DataVersion(timestamp=now_ms())

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

    def _check_room(self, count: int) -> None:
        """Raise RequestError 1 if the table may not have more than ``count`` entries."""
        raise NotImplementedError

    def _on_replaced(self) -> None:
        """Called after the table is loaded, and after each change."""

    def _put(self, changed: Mapping[str, Entry]) -> None:
        """Create or replace entries.

        Raises:
            RequestError: 1 if the file cannot be written; nothing has changed.
        """
        self._replace_all({**self._entries, **changed})

    def _update(self, name: str, entry: Entry) -> None:
        """Create or replace an entry.

        Raises:
            RequestError: 1 if it is new and there are too many, or if the file cannot be written; nothing has
                changed.
        """
        if name not in self._entries:
            self._check_room(len(self._entries))
        self._put({name: entry})

    def delete(self, name: str) -> bool:
        """Remove an entry without notifying the name servers, as RocketMQ does; return False if unknown.

        Raises:
            RequestError: 1 if the file cannot be written; nothing has changed.
        """
        if name not in self._entries:
            return False
        self._replace_all({other: entry for other, entry in self._entries.items() if other != name})
        self._unknown.drop(name)
        return True

    def _take_over(self, entries: Mapping[str, Entry], version: DataVersion) -> None:
        """Replace all entries by the master's, if its data version differs.

        Raises:
            RequestError: 1 if there are too many, or the file cannot be written; nothing has changed.
        """
        if version != self.data_version:
            self._check_room(len(entries) - 1)
            self._replace_all(dict(entries), version)
            self._unknown.forget()

    def _replace_all(self, entries: dict[str, Entry], version: DataVersion | None = None) -> None:
        is_own = version is None
        if version is None:
            version = DataVersion(timestamp=self._now_ms(), counter=self.data_version.counter + 1)
        content = {
            _VERSION: _to_file(version),
            self._key: {name: _to_file(entry) for name, entry in entries.items()},
        }
        # The unknown fields belong to this broker's file, not to the master's entries.
        self._save(self._unknown.added_to(content) if is_own else content)
        self._entries = entries
        self.data_version = version
        self._on_replaced()

    def _save(self, content: Mapping[str, Any]) -> None:
        try:
            self._file.save(content)
        except StoreError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from error


def _to_file(part: RemotingBody) -> dict[str, Any]:
    return {key: value for key, value in msgspec.to_builtins(part).items() if value is not None}
