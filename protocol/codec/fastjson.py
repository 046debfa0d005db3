"""Reads and writes fastjson's JSON, which departs from the standard and which RocketMQ uses.

Specification: docs/spec/protocol.md 5.

Integer map keys are written bare (``{0:"a"}``) and object map keys as objects (``{{"brokerName":"b",
"queueId":0,"topic":"T"}:100}``). RocketMQ uses only message queues as object keys.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import msgspec

from rewindmq.protocol.codec.fastjson_scanner import scan
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.limits import MAX_BODY_DEPTH
from rewindmq.protocol.message_queue import MessageQueue

_NON_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_CONTAINERS: Final = frozenset((dict, list, tuple))


def loads(data: bytes | str, max_values: int | None = None) -> Any:
    """Parse strict JSON, or else any text that fastjson writes or accepts.

    Beyond the standard: bare integer and identifier keys, single quotes, comments, extra commas, NaN (becomes
    None), and objects as keys (become ``MessageQueue``, or stay text). If a key is repeated, its last value
    applies.

    Args:
        max_values: limit on values and keys, about; it limits the processor time and the memory.

    Raises:
        BodyError: the text is not valid, is not UTF-8, has more values than ``max_values``, or is nested
            deeper than ``MAX_BODY_DEPTH``.
    """
    if max_values is not None and len(data) > max_values:
        _check_values(data, max_values)
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return scan(_as_text(data), max_values)
    except UnicodeDecodeError as error:
        raise BodyError(f"JSON body: {error}") from None
    except RecursionError:
        raise BodyError(f"JSON body: nested deeper than {MAX_BODY_DEPTH}") from None
    if is_deeper_than(value, MAX_BODY_DEPTH):
        raise BodyError(f"JSON body: nested deeper than {MAX_BODY_DEPTH}")
    return value


def _check_values(data: bytes | str, max_values: int) -> None:
    # Each value but the first follows one of these. Counting them within texts, too, is good enough.
    marks: Any = ",[{" if isinstance(data, str) else (b",", b"[", b"{")
    if sum(map(data.count, marks)) > max_values:
        raise BodyError(f"JSON body: more than {max_values} values")


def _as_text(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyError(f"JSON body: {error}") from None


def is_deeper_than(value: Any, limit: int) -> bool:
    """Return whether containers are nested more than ``limit`` levels."""
    level = [value] if type(value) in _CONTAINERS else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) in _CONTAINERS
        ]
    return bool(level)


def dumps(value: Any, *, standard: bool = False) -> str:
    r"""Write JSON as fastjson does: no whitespace, sorted keys, None fields omitted.

    Args:
        value: texts, numbers, booleans, None, lists, and dicts whose keys are texts, ints or
            ``MessageQueue``. Floats that are not finite are written like None, as fastjson does.
        standard: strict JSON in ASCII: integer keys quoted, object keys as quoted JSON text, other characters
            as ``\uXXXX`` (RocketMQ 4.9.4's response to GET_ROUTEINFO_BY_TOPIC (105) from version 401 on).

    Raises:
        BodyError: a text contains a lone surrogate, which JSON cannot encode.
    """
    parts: list[str] = []
    try:
        _write(value, parts, standard)
    except UnicodeEncodeError as error:
        raise BodyError(f"JSON body: {error}") from None
    return "".join(parts)


def _write(value: Any, parts: list[str], standard: bool) -> None:
    if isinstance(value, str):
        parts.append(_quote(value, standard))
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif isinstance(value, int):
        parts.append(int.__repr__(value))
    elif isinstance(value, float):
        parts.append(float.__repr__(value) if math.isfinite(value) else "null")
    elif value is None:
        parts.append("null")
    elif isinstance(value, dict):
        _write_object(value, parts, standard)
    else:
        separator = "["
        for element in value:
            parts.append(separator)
            _write(element, parts, standard)
            separator = ","
        parts.append("]" if separator == "," else "[]")


def _write_object(value: dict[Any, Any], parts: list[str], standard: bool) -> None:
    separator = "{"
    for key in _in_order(value):
        member = value[key]
        if member is None or (isinstance(member, float) and not math.isfinite(member)):
            continue
        parts.append(separator)
        parts.append(key_text(key, standard=standard))
        parts.append(":")
        _write(member, parts, standard)
        separator = ","
    parts.append("}" if separator == "," else "{}")


def _in_order(value: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        # Only a dict that a peer sent has keys of several types, which do not compare.
        return sorted(value, key=lambda key: (type(key).__name__, key))


def key_text(key: str | int | MessageQueue, *, standard: bool) -> str:
    """Return a key as ``dumps`` writes it, without the colon."""
    if isinstance(key, str):
        return _quote(key, standard)
    if isinstance(key, int):
        return f'"{key}"' if standard else int.__repr__(key)
    text = (
        f'{{"brokerName":{_quote(key.broker_name, standard)},"queueId":{key.queue_id},'
        f'"topic":{_quote(key.topic, standard)}}}'
    )
    return _quote(text, standard) if standard else text


def _quote(text: str, ascii_only: bool) -> str:
    quoted = msgspec.json.encode(text).decode()
    if ascii_only and not quoted.isascii():
        return _NON_ASCII.sub(_escape, quoted)
    return quoted


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
