"""Keeps the fields of a configuration file that RewindMQ does not know, for the next save.

RocketMQ 5 writes such fields (docs/spec/store.md 8.2, 8.3). A RocketMQ 5 broker that opens the store again
finds them unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any, Final

import msgspec

from rewindmq.protocol.body.registration import DataVersion

_VERSION: Final = "dataVersion"
_Fields = dict[str, Any]


class UnknownFields:
    """The unknown fields of a file, of its ``dataVersion``, and of each entry of its table.

    Args:
        table: the field that contains the entries by name.
        entry: the type of an entry, whose fields are known.
    """

    def __init__(self, table: str, entry: type[msgspec.Struct]) -> None:
        self._table = table
        self._known = frozenset((_VERSION, table))
        self._known_of_entry = _names(entry)
        self._fields: _Fields = {}
        self._of_version: _Fields = {}
        self._of_entries: dict[str, _Fields] = {}

    def copy(self) -> UnknownFields:
        """Return a copy, which later changes of this object do not affect."""
        twin = copy(self)
        twin._of_entries = dict(self._of_entries)
        return twin

    def note(self, document: Mapping[str, Any]) -> None:
        """Remember the unknown fields of a parsed file, whose table contains objects."""
        self._fields = _unknown(document, self._known)
        self._of_version = _unknown(document.get(_VERSION) or {}, _names(DataVersion) - {"stateVersion"})
        entries = document.get(self._table) or {}
        unknown = {name: _unknown(entry, self._known_of_entry) for name, entry in entries.items()}
        self._of_entries = {name: fields for name, fields in unknown.items() if fields}

    def forget(self) -> None:
        """Forget all unknown fields, because a master's table replaces this one."""
        self._fields, self._of_version, self._of_entries = {}, {}, {}

    def drop(self, name: str) -> None:
        """Forget the unknown fields of a removed entry."""
        self._of_entries.pop(name, None)

    def added_to(self, content: Mapping[str, Any]) -> _Fields:
        """Return ``content`` with the unknown fields added; the fields of ``content`` take precedence."""
        if not (self._fields or self._of_version or self._of_entries):
            return dict(content)
        entries = {
            name: {**self._of_entries.get(name, {}), **entry} for name, entry in content[self._table].items()
        }
        version = {**self._of_version, **content[_VERSION]}
        return {**self._fields, **content, _VERSION: version, self._table: entries}


@cache
def _names(struct: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(struct))


def _unknown(document: Mapping[str, Any], known: frozenset[str]) -> _Fields:
    return {name: value for name, value in document.items() if name not in known}
