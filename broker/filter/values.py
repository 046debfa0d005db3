"""Values of a filter expression, compared as Java compares them.

RocketMQ 4.9.4 ``ComparisonExpression#__compare``: if two values have different types, one is converted. A
property's text is converted to the type of the number. If it is not a number of that type, the comparison
fails and the message does not match.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from rewindmq.broker.filter.errors import EvaluationError

_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
# Possessive quantifiers prevent backtracking, with which a text of 32,767 digits and a letter takes a minute.
_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?=[fFdD]?\Z)|[+-]?(?:NaN|Infinity)\Z"
)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+(?=[fFdD]?\Z)"
)
# The characters that Java's String#trim removes: all up to and including the space.
_TRIMMED: Final = "".join(map(chr, range(0x21)))
# Longer texts are refused as integers. Java would accept more leading zeros.
_MAX_NUMBER_LENGTH: Final = 1_000
# An expression may read one property thousands of times: the values of longer texts are cached.
_SHORT: Final = 64


class Long(int):
    """A Java ``Long``; a plain int is an ``Integer``. The type decides how a compared text is parsed."""

    __slots__ = ()


Value = None | bool | str | int | float


def integer_constant(text: str) -> int:
    """Return the constant, an Integer if it fits; raise OverflowError beyond a Long."""
    value = int(text)
    if value in _INT32:
        return value
    if value in _INT64:
        return Long(value)
    raise OverflowError(text)


def negate(value: Value) -> Value:
    """Return the negative of a number in its own type; None for other values."""
    if type(value) is Long:
        return Long(-value)
    return -value if type(value) is int or type(value) is float else None


def compare(left: Value, right: Value) -> int:
    """Return a negative number, 0 or a positive number, as ``compareTo``; -1 for incomparable types.

    Raises:
        EvaluationError: if a text is not a number of the other value's type, or the left value is a truth
            value and the right one a text, where Java's cast fails.
    """
    if type(left) is not type(right):
        if type(left) is str:
            left = _converted(left, right)
        elif type(right) is str:
            if type(left) is bool:
                # Java casts the Boolean to a String and fails.
                raise EvaluationError("a truth value is compared with a text")
            right = _converted(right, left)
        if type(left) is bool or type(right) is bool:
            if type(left) is not type(right):
                return -1
        elif type(left) is float or type(right) is float:
            left, right = _as_double(left), _as_double(right)
    if type(left) is float and type(right) is float:
        return _compare_doubles(left, right)
    assert left is not None
    assert right is not None
    return (left > right) - (left < right)  # type: ignore[operator]  # of one type by now


def compare_as_doubles(left: str, right: str) -> int:
    """Compare two texts as numbers; raise EvaluationError if one is not a number."""
    return _compare_doubles(java_double(left), java_double(right))


def _converted(text: str, model: Value) -> Value:
    if type(model) is bool:
        return text.lower() == "true"
    if type(model) is float:
        return java_double(text)
    return java_integer(text, _INT64 if type(model) is Long else _INT32)


def _as_double(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _compare_doubles(left: float, right: float) -> int:
    """``Double#compareTo``: NaN is above everything and equal to itself, -0.0 below 0.0."""
    a, b = _double_key(left), _double_key(right)
    return (a > b) - (a < b)


def _double_key(value: float) -> tuple[bool, float, float]:
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1.0, value))


def java_integer(text: str, bounds: range) -> int:
    """``Integer#valueOf`` or ``Long#valueOf``. Raise EvaluationError for another text or range."""
    if len(text) > _MAX_NUMBER_LENGTH or not _INTEGER.fullmatch(text) or (value := int(text)) not in bounds:
        raise EvaluationError(f"{text!r} is not such an integer")
    return value


def java_double(text: str) -> float:
    """``Double#valueOf``: also surrounded by blanks, hexadecimal, or with the suffix f or d."""
    value = _read_double(text) if len(text) <= _SHORT else _read_long_double(text)
    if value is None:
        raise EvaluationError(f"{text!r} is no number")
    return value


def _read_double(text: str) -> float | None:
    trimmed = text.strip(_TRIMMED)
    match = _DECIMAL.match(trimmed)
    if match is not None:
        return float(match.group())
    match = _HEXADECIMAL.match(trimmed)
    if match is None:
        return None
    try:
        return float.fromhex(match.group())
    except OverflowError:
        return -math.inf if trimmed.startswith("-") else math.inf


_read_long_double = lru_cache(maxsize=64)(_read_double)
