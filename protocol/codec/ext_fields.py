"""Ext fields as text, the form JSON and ROCKETMQ headers carry them in (docs/spec/protocol.md 2.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from rewindmq.protocol.command import CommandHeader, RemotingCommand
from rewindmq.protocol.ext_text import ext_text

_Fields = Callable[[Any], dict[str, str]]

# By header type, made when one is first met.
_FIELDS: Final[dict[type[CommandHeader], _Fields]] = {}
# How a value becomes text, by the kind that its field is declared as.
_TEXT: Final = {
    msgspec.inspect.StrType: "value",
    msgspec.inspect.IntType: 'f"{value}"',
    msgspec.inspect.BoolType: '"true" if value else "false"',
}
_OTHER: Final = "ext_text(to_builtins(value))"


def text_fields(command: RemotingCommand) -> dict[str, str]:
    """Every ext field of ``command`` as text, those of its typed header included, nulls left out."""
    header = command.header
    if header is None:
        return _texts(command.ext)
    fields = (_FIELDS.get(type(header)) or _compile(type(header)))(header)
    return _texts(command.ext) | fields if command.ext_fields or command.raw_ext else fields


def _texts(fields: Any) -> dict[str, str]:
    # Nearly all are text already: what is one needs no call.
    return {
        key: value if type(value) is str else ext_text(value)  # type: ignore[misc]  # None only for None
        for key, value in fields.items()
        if value is not None
    }


def _compile(header_type: type[CommandHeader]) -> _Fields:
    """The fields of one type by a function made for it.

    Every answer has them, and a loop that asks each value for its type takes three times as long: more than
    all the rest of the header (docs/benchmarks.md).
    """
    names: dict[str, Any] = {"ext_text": ext_text, "to_builtins": msgspec.to_builtins}
    lines = ["def fields(header):", "    found = {}"]
    for number, field in enumerate(msgspec.structs.fields(header_type)):
        info = msgspec.inspect.type_info(field.type)
        kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
        kind, *others = [type(kind) for kind in kinds if not isinstance(kind, msgspec.inspect.NoneType)]
        text = _OTHER if others else _TEXT.get(kind, _OTHER)
        names[f"default{number}"] = field.default
        lines += [
            f"    value = header.{field.name}",
            # The default stays off the wire as in ``msgspec``, by identity.
            f"    if value is not None and value is not default{number}:",
            f"        found[{field.encode_name!r}] = {text}",
        ]
    # Nothing but the names that our own types give their fields.
    exec("\n".join([*lines, "    return found"]), names)  # noqa: S102
    function: _Fields = names["fields"]
    _FIELDS[header_type] = function
    return function
