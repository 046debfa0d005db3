"""What other releases write into a configuration file beside what is known here, kept for the next save.

RocketMQ 5 has members that this broker does without (docs/spec/store.md 8.2, 8.3); a store that comes back to
it has them still.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Any, Final

import msgspec

from rewindmq.protocol.body.registration import DataVersion

_VERSION: Final = "dataVersion"
_Members = dict[str, Any]


class UnknownFields:
    """The unknown members of a file, of its ``dataVersion``, and of each entry of its table.

    Args:
        table: the member that holds the entries by name.
        entry: what is known of an entry.
    """

    def __init__(self, table: str, entry: type[msgspec.Struct]) -> None:
        self._table = table
        self._known = frozenset((_VERSION, table))
        self._known_of_entry = _names(entry)
        self._members: _Members = {}
        self._of_version: _Members = {}
        self._of_entries: dict[str, _Members] = {}

    def copy(self) -> UnknownFields:
        """Return the same unknown members, which later changes of this object leave as they are."""
        twin = copy(self)
        twin._of_entries = dict(self._of_entries)
        return twin

    def note(self, document: Mapping[str, Any]) -> None:
        """Remember those of a parsed file; its table has been found to hold objects."""
        self._members = _unknown(document, self._known)
        self._of_version = _unknown(document.get(_VERSION) or {}, _names(DataVersion) - {"stateVersion"})
        entries = document.get(self._table) or {}
        unknown = {name: _unknown(entry, self._known_of_entry) for name, entry in entries.items()}
        self._of_entries = {name: members for name, members in unknown.items() if members}

    def forget(self) -> None:
        """The table is somebody else's from now on."""
        self._members, self._of_version, self._of_entries = {}, {}, {}

    def drop(self, name: str) -> None:
        """An entry is gone; another of its name begins anew."""
        self._of_entries.pop(name, None)

    def added_to(self, content: Mapping[str, Any]) -> _Members:
        """``content``, as it is saved: what is in it counts, what is not was kept."""
        if not (self._members or self._of_version or self._of_entries):
            return dict(content)
        entries = {
            name: {**self._of_entries.get(name, {}), **entry} for name, entry in content[self._table].items()
        }
        version = {**self._of_version, **content[_VERSION]}
        return {**self._members, **content, _VERSION: version, self._table: entries}


@cache
def _names(struct: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(member.encode_name for member in msgspec.structs.fields(struct))


def _unknown(document: Mapping[str, Any], known: frozenset[str]) -> _Members:
    return {name: member for name, member in document.items() if name not in known}
