"""Converts ext fields to the texts of JSON and ROCKETMQ headers (docs/spec/protocol.md 2.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from rewindmq.protocol.command import CommandHeader, RemotingCommand
from rewindmq.protocol.ext_text import ext_text

_Fields = Callable[[Any], dict[str, str]]

# By header type; each is created on first use.
_FIELDS: Final[dict[type[CommandHeader], _Fields]] = {}
# The expression that converts a value to text, by the field's declared type.
_TEXT: Final = {
    msgspec.inspect.StrType: "value",
    msgspec.inspect.IntType: 'f"{value}"',
    msgspec.inspect.BoolType: '"true" if value else "false"',
}
_OTHER: Final = "ext_text(to_builtins(value))"


def text_fields(command: RemotingCommand) -> dict[str, str]:
    """Return every ext field of ``command`` as text, including its typed header, without nulls."""
    header = command.header
    if header is None:
        return _texts(command.ext)
    fields = (_FIELDS.get(type(header)) or _compile(type(header)))(header)
    return _texts(command.ext) | fields if command.ext_fields or command.raw_ext else fields


def _texts(fields: Any) -> dict[str, str]:
    # Nearly all values are text already and need no call.
    return {
        key: value if type(value) is str else ext_text(value)  # type: ignore[misc]  # None only for None
        for key, value in fields.items()
        if value is not None
    }


def _compile(header_type: type[CommandHeader]) -> _Fields:
    """Generate a function that returns the fields of one header type.

    Every response calls the function. A loop that checks each value's type takes three times as long, and
    longer than the rest of the header (docs/benchmarks.md).
    """
    names: dict[str, Any] = {"ext_text": ext_text, "to_builtins": msgspec.to_builtins}
    lines = ["def fields(header):", "    found = {}"]
    for number, field in enumerate(msgspec.structs.fields(header_type)):
        info = msgspec.inspect.type_info(field.type)
        kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
        kind, *others = [type(kind) for kind in kinds if not isinstance(kind, msgspec.inspect.NoneType)]
        text = _OTHER if others else _TEXT.get(kind, _OTHER)
        lines.append(f"    value = header.{field.name}")
        store = f"found[{field.encode_name!r}] = {text}"
        if field.required and len(kinds) == 1:
            lines.append(f"    {store}")
            continue
        names[f"default{number}"] = field.default
        # The default is not sent; compared by identity, as ``msgspec`` does.
        lines += [f"    if value is not None and value is not default{number}:", f"        {store}"]
    # The source contains only field names of RewindMQ's own types.
    exec("\n".join([*lines, "    return found"]), names)  # noqa: S102
    function: _Fields = names["fields"]
    _FIELDS[header_type] = function
    return function
