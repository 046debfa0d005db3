"""Compares a typed body with the JSON from which it was decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from rewindmq.protocol.message_queue import MessageQueue


def differences(body_type: type, before: Any, after: Any) -> Iterator[str]:
    """Yield each difference as ``Class.field``, with the values if both have the field.

    Not counted: null for absent, a member that is written at its default, order in sets, another name under
    which some release sends a member.
    """
    yield from _differences(inspect.type_info(body_type), before, after, body_type.__name__)


def _differences(info: inspect.Type, before: Any, after: Any, place: str) -> Iterator[str]:
    match info:
        case inspect.StructType(cls=cls, fields=fields) if isinstance(before, dict):
            yield from _members(cls, fields, before, after)
        case inspect.DictType(value_type=value):
            old, new = _by_text(before), _by_text(after)
            if old.keys() != new.keys():
                yield f"{place}: keys {sorted(old)} became {sorted(new)}"
            for key in old.keys() & new.keys():
                yield from _differences(value, old[key], new[key], place)
        case inspect.ListType(item_type=item) | inspect.SetType(item_type=item):
            old_items, new_items = list(before), list(after)
            if isinstance(info, inspect.SetType):
                old_items.sort(key=repr)
                new_items.sort(key=repr)
            if len(old_items) != len(new_items):
                yield f"{place}: {len(old_items)} elements became {len(new_items)}"
            for old_item, new_item in zip(old_items, new_items, strict=False):
                yield from _differences(item, old_item, new_item, place)
        case inspect.UnionType(types=types):
            (part,) = (part for part in types if not isinstance(part, inspect.NoneType))
            yield from _differences(part, before, after, place)
        case _:
            if before != after:
                yield f"{place}: {before!r} became {after!r}"


def _members(
    cls: type, fields: tuple[inspect.Field, ...], before: dict[str, Any], after: dict[str, Any]
) -> Iterator[str]:
    aliases = getattr(cls, "aliases", {})
    old = {aliases.get(name, name): member for name, member in before.items() if member is not None}
    known = {field.encode_name: field for field in fields}
    for name, member in old.items():
        if name not in known:
            yield f"{cls.__name__}.{name}"
        elif name not in after:
            yield f"{cls.__name__}.{name}: {member!r} is gone"
        else:
            yield from _differences(known[name].type, member, after[name], f"{cls.__name__}.{name}")
    for name in after.keys() - old.keys():
        if after[name] != _default(known[name]):
            yield f"{cls.__name__}.{name}: {after[name]!r} was not there"


def _default(field: inspect.Field) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.to_builtins(field.default_factory())
    return msgspec.to_builtins(field.default)


def _by_text(table: dict[Any, Any]) -> dict[str, Any]:
    """Keys as they compare: message queues by their parts, whatever order these came in."""
    return {repr(key) if isinstance(key, MessageQueue) else str(key): value for key, value in table.items()}
