"""JSON as RocketMQ writes its configuration files: fastjson's pretty format (``store.md`` 8.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def format_config(value: Any) -> str:
    """Tabs, no blank behind the colon, no final newline; integer keys bare and all on one line.

    Args:
        value: mappings (keys all str or all int), sequences, str, int, float, bool. Members that are None
            are left out, as fastjson does.
    """
    parts: list[str] = []
    _write(value, 1, parts)
    return "".join(parts)


def _write(value: Any, depth: int, parts: list[str]) -> None:
    if isinstance(value, Mapping):
        members = {key: member for key, member in value.items() if member is not None}
        _write_members(members, depth, parts)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        _write_items(value, depth, parts)
    else:
        parts.append(msgspec.json.encode(value).decode())


def _write_members(members: Mapping[Any, Any], depth: int, parts: list[str]) -> None:
    parts.append("{")
    separator = ""
    for key, member in members.items():
        parts.append(separator)
        if isinstance(key, int):
            parts.append(f"{key}:")
        else:
            parts.append("\n" + "\t" * depth + msgspec.json.encode(key).decode() + ":")
        _write(member, depth + 1, parts)
        separator = ","
    parts.append(_closing("}", depth) if members else "}")


def _write_items(items: Sequence[Any], depth: int, parts: list[str]) -> None:
    parts.append("[")
    separator = ""
    for item in items:
        parts.append(separator + "\n" + "\t" * depth)
        _write(item, depth + 1, parts)
        separator = ","
    parts.append(_closing("]", depth) if items else "]")


def _closing(bracket: str, depth: int) -> str:
    return "\n" + "\t" * (depth - 1) + bracket
