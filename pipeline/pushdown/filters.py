"""Turns Spark's filters into a ``Selection``."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from rewindmq.pipeline.decode.message_columns import FIRST_MOMENT_MS, LAST_MOMENT_MS
from rewindmq.pipeline.selection import Range, Selection

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_NUMBERS: Final = {
    "queueOffset": "queue_offsets",
    "physicalOffset": "positions",
    "storeTimestampMs": "store_times",
}
_COMPARISONS: Final = (GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)


def narrow(selection: Selection, filters: Iterable[Filter]) -> Selection:
    """Return the selection narrowed by the filters; filters that cannot save reading are ignored."""
    for condition in filters:
        if isinstance(condition, EqualTo | EqualNullSafe):
            selection = _among(selection, condition.attribute, (condition.value,))
        elif isinstance(condition, In):
            # None: one of the values is a time that Python does not have.
            selection = _among(selection, condition.attribute, condition.value or ())
        elif isinstance(condition, _COMPARISONS):
            selection = _compared(selection, condition)
    return selection


def _among(selection: Selection, path: tuple[str, ...], values: tuple[Any, ...]) -> Selection:
    """Narrow to rows whose column has one of these values; no message has a null in these columns."""
    name = path[0]
    if len(path) > 1 or any(value is None for value in values) or not values:
        return selection
    if name in ("topic", "uniqueKey") and all(isinstance(value, str) for value in values):
        return selection.of_topics(values) if name == "topic" else selection.with_unique_keys(values)
    if name == "queueId" and all(isinstance(value, int) for value in values):
        return selection.of_queues(values)
    bounds = [_bounds(name, value) for value in values]
    if any(bound is None for bound in bounds):
        return selection
    known = [bound for bound in bounds if bound is not None]
    return _cut(selection, name, Range(min(low for low, _ in known), max(high for _, high in known)))


def _compared(
    selection: Selection, condition: GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
) -> Selection:
    name = condition.attribute[0]
    bounds = _bounds(name, condition.value) if len(condition.attribute) == 1 else None
    if bounds is None:
        return selection
    low, high = bounds
    match condition:
        case GreaterThan():
            return _cut(selection, name, Range(low=high + 1))
        case GreaterThanOrEqual():
            return _cut(selection, name, Range(low=low))
        case LessThan():
            return _cut(selection, name, Range(high=low - 1))
        case _:
            return _cut(selection, name, Range(high=high))


def _bounds(name: str, value: Any) -> Range | None:
    """Return the whole numbers to compare a column with; None for columns that cannot save reading.

    A value at or above the given one is at or above ``low``; a value at or below it is at or below ``high``.
    Both are the value itself. For a time between two milliseconds, ``low`` is the later one and ``high`` the
    earlier one.
    """
    if name in _NUMBERS and isinstance(value, int):
        return Range(value, value)
    if name == "storeTimestamp" and isinstance(value, datetime) and value.tzinfo is not None:
        microseconds = (value - _EPOCH) // _MICROSECOND
        low, high = -(-microseconds // 1_000), microseconds // 1_000
        # Columns show a time outside Spark's range as the first or last time of the range.
        bounds = Range(low, high)
        if low <= FIRST_MOMENT_MS:
            bounds = bounds._replace(low=Range().low)
        return bounds if high < LAST_MOMENT_MS else bounds._replace(high=Range().high)
    return None


def _cut(selection: Selection, name: str, bounds: Range) -> Selection:
    field = "store_times" if name == "storeTimestamp" else _NUMBERS[name]
    before: Range = getattr(selection, field)
    changed: dict[str, Any] = {field: before.cut(bounds.low, bounds.high)}
    return selection._replace(**changed)
