"""Lets Spark plan a query whose filter has a time that Python does not have.

PySpark 4.3 converts the values of all filters to Python, and only then asks the reader which of them it uses.
``datetime`` has the years 1 to 9999: at another year the conversion raises OverflowError, and the query ends.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import VariantVal


def accept_far_times() -> None:
    """Let a filter's value be None if Python does not have it. ``narrow`` ignores such a filter.

    Call this only in a process that Spark has started for the filters of one query.
    """
    convert = VariantVal.toPython

    def to_python(self: VariantVal) -> Any:
        try:
            return convert(self)
        except OverflowError:
            return None

    VariantVal.toPython = to_python  # type: ignore[method-assign]
