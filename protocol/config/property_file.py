r"""RocketMQ's property files (``broker.conf``, ``namesrv.properties``) read into typed configurations.

The syntax is ``java.util.Properties``: ``#`` and ``!`` comments, ``=``, ``:`` or blanks between key and
value, a backslash at the end of a line to continue it, ``\uXXXX`` escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

import msgspec

from rewindmq.protocol.errors import ConfigError

_KEY: Final = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPES: Final = {character: letter for letter, character in _ESCAPED.items()}
# Characters that end a key, or begin a comment at the start of a line.
_KEY_SPECIAL: Final = re.compile(r"[\\=:#!\s]")
_VALUE_SPECIAL: Final = re.compile(r"[\\\n\r]")


class PropertyEntry(NamedTuple):
    """One entry and its first line number (from 1)."""

    key: str
    value: str
    line: int


class LoadedConfig(NamedTuple):
    """The known values of a file by field name, and its unknown keys."""

    fields: dict[str, Any]
    unknown_keys: list[str]


def parse_properties_file(text: str) -> list[PropertyEntry]:
    """Return the entries of a file in order; keep blank values, strip surrounding blanks."""
    entries = []
    for number, line in _logical_lines(text):
        match = _KEY.match(line)
        assert match is not None  # every part of the pattern may be empty
        key, value = (_ESCAPE.sub(_unescape, part) for part in match.groups())
        entries.append(PropertyEntry(key, value.strip(), number))
    return entries


@cache
def property_fields(config_type: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Return the fields that a file may set, by key; nested structs are not included."""
    return MappingProxyType(
        {
            field.encode_name: field
            for field in msgspec.structs.fields(config_type)
            if not (isinstance(field.type, type) and issubclass(field.type, msgspec.Struct))
        }
    )


def convert_properties(
    config_type: type[msgspec.Struct], entries: Iterable[PropertyEntry], source: str
) -> LoadedConfig:
    """Convert each known key to its field's type; if a key is repeated, the last value applies, as in Java.

    Args:
        config_type: a Struct whose encoded names are RocketMQ's keys (``rename="camel"``).
        source: the file's name, for messages.

    Raises:
        ConfigError: a value is invalid for its key; the text names file, line and key.
    """
    known = property_fields(config_type)
    fields: dict[str, Any] = {}
    unknown = []
    for entry in entries:
        field = known.get(entry.key)
        if field is None:
            unknown.append(entry.key)
            continue
        try:
            fields[field.name] = msgspec.convert(entry.value, field.type, strict=False)
        except msgspec.ValidationError as error:
            reason = _reason(field.type, error)
            raise ConfigError(f"{source}:{entry.line}: {entry.key} = {entry.value!r}: {reason}") from None
    return LoadedConfig(fields, unknown)


def _reason(field_type: Any, error: msgspec.ValidationError) -> str:
    # A key may have no default: ``Enum | None``.
    for kind in get_args(field_type) or (field_type,):
        if isinstance(kind, type) and issubclass(kind, Enum):
            return f"must be one of {', '.join(str(member.value) for member in kind)}"
    return str(error)[:1].lower() + str(error)[1:]


def format_properties_file(values: dict[str, object]) -> str:
    """Return a file's text that ``parse_properties_file`` and Java read back."""
    lines = []
    for key, value in values.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        lines.append(f"{_KEY_SPECIAL.sub(_escape, key)}={_VALUE_SPECIAL.sub(_escape, text)}\n")
    return "".join(lines)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return f"\\{_ESCAPES.get(character, character)}"


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending = ""
    start = 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        stripped = line.lstrip(" \t\f")
        if not pending and (not stripped or stripped[0] in "#!"):
            continue
        start = start if pending else number
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            pending += stripped[:-1]
        else:
            yield start, pending + stripped
            pending = ""
    if pending:
        yield start, pending


def _unescape(match: re.Match[str]) -> str:
    escape = match.group(1)
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPED.get(escape, escape)
