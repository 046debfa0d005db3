"""Converts those arguments of ``Message`` that are not of the usual types: the slow part of its constructor.

An argument of any other type is refused here: otherwise a property would be stored as its ``str()``, and the
send of a body would fail later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message.properties import TIMER_DELAY_MS, TIMER_DELAY_SEC, TIMER_DELIVER_MS

# MessageConst.KEY_SEPARATOR.
KEY_SEPARATOR: Final = " "


def body_of(body: object) -> bytes:
    """Return the body as bytes.

    Raises:
        ClientError: the body is not bytes-like.
    """
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    hint = ": pass text.encode()" if isinstance(body, str) else ""
    raise ClientError(f"body must be bytes, not {_kind(body)}{hint}")


def text_of(name: str, value: object, allowed: str = "str") -> str:
    """Return the text; a member of a text enum gives its value.

    Raises:
        ClientError: the value is not text; the error names it and the allowed types.
    """
    if isinstance(value, str):
        return str.__str__(value)
    raise ClientError(f"{name} must be {allowed}, not {_kind(value)}")


def keys_of(keys: object) -> str:
    """Return the keys as one text; join several with a space, as ``Message#setKeys(Collection)`` does.

    Raises:
        ClientError: it is neither a str nor a collection of str.
    """
    if isinstance(keys, Collection) and not isinstance(keys, str | bytes | bytearray | memoryview | Mapping):
        return KEY_SEPARATOR.join(text_of("each of keys", key) for key in keys)
    return text_of("keys", keys, "str, several of them, or None")


def properties_of(properties: object) -> dict[str, str]:
    """Return a copy of the properties.

    Raises:
        ClientError: ``properties`` is not a mapping of str to str.
    """
    # A check for an abstract base class takes longer than the rest of the function.
    if type(properties) is not dict and not isinstance(properties, Mapping):
        raise ClientError(f"properties must be a mapping of str to str, not {_kind(properties)}")
    copy = dict(properties)
    for name, value in copy.items():
        if type(name) is not str or type(value) is not str:
            return {text_of("names of properties", key): _value_of(key, text) for key, text in copy.items()}
    return copy


def _value_of(name: object, value: object) -> str:
    if value is None:
        raise ClientError(f"property {name!r} must be str, not NoneType: leave it out")
    return text_of(f"property {name!r}", value)


def check_numbers(flag: object, delay_level: object) -> None:
    """Raise ClientError if ``flag`` is not an int32 or ``delay_level`` is not an int."""
    if not isinstance(flag, int) or not -(1 << 31) <= flag < 1 << 31:
        raise ClientError(f"flag must be an int32, not {flag!r}")
    if not isinstance(delay_level, int):
        raise ClientError(f"delay_level must be int, not {_kind(delay_level)}")


def timer_of(delay_time_ms: object, delay_time_sec: object, deliver_time_ms: object) -> tuple[str, str]:
    """Return name and value of the property that asks for a delivery time; at least one argument is given.

    Raises:
        ClientError: several are given, one is no int, or a delay is negative.
    """
    given = {
        TIMER_DELAY_MS: ("delay_time_ms", delay_time_ms),
        TIMER_DELAY_SEC: ("delay_time_sec", delay_time_sec),
        TIMER_DELIVER_MS: ("deliver_time_ms", deliver_time_ms),
    }
    given = {name: pair for name, pair in given.items() if pair[1] is not None}
    if len(given) > 1:
        raise ClientError(f"{' and '.join(pair[0] for pair in given.values())} do not go together: pass one")
    ((name, (argument, value)),) = given.items()
    if not isinstance(value, int) or isinstance(value, bool):
        raise ClientError(f"{argument} must be int, not {_kind(value)}")
    if not 0 <= value < 1 << 63:
        raise ClientError(f"{argument} must be a number from 0 to 2^63 - 1, not {value}")
    return name, str(value)


def _kind(value: object) -> str:
    return type(value).__name__
