"""Compiled filters of pulls, and their cache."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Final

from rewindmq.broker.filter.errors import FilterError
from rewindmq.broker.filter.expression import Expression, matches
from rewindmq.broker.filter.parser import parse
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message.properties import parse_properties
from rewindmq.protocol.message.record import RecordError, decode_record

_log = logging.getLogger(__name__)

# Size of the cache: many expressions of usual length, or few long ones.
_SHORT: Final = 1_024
# Limit of one read's cost, about 20 ms. The unit is one evaluated node of an expression. Each record costs
# the nodes of the expression, ``_RECORD_COST`` for decoding, and one unit for each ``_BYTES_PER_UNIT`` bytes.
_SCAN_BUDGET: Final = 40_000
_RECORD_COST: Final = 20
_BYTES_PER_UNIT: Final = 1_024


class PropertyFilter:
    """Decides whether a message passes, by the message's properties."""

    __slots__ = ("expression",)

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def accepts(self, properties: bytes) -> bool:
        """Return True if a message with this properties text passes."""
        return matches(self.expression, parse_properties(properties.decode("utf-8", "replace")))

    def scan(self) -> FilterScan:
        """Return the filter for the records of one read."""
        return FilterScan(self.expression)


class FilterScan:
    """Filters the records of one read, with a limit on its work.

    Attributes:
        is_exhausted: True if the read must stop; the next read begins at the following record.
    """

    __slots__ = ("_cost", "_expression", "_left")

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._cost = _RECORD_COST + expression.size
        self._left = _SCAN_BUDGET

    @property
    def is_exhausted(self) -> bool:
        return self._left <= 0

    def accepts(self, record: bytes) -> bool:
        """Return True if a stored message passes; a damaged message does not."""
        self._left -= self._cost + len(record) // _BYTES_PER_UNIT
        try:
            return matches(self._expression, decode_record(record).properties)
        except RecordError:
            return False


def compile_filter(text: str, *, text_tests: bool) -> PropertyFilter:
    """Return the filter of an SQL92 expression; equal texts return the same object.

    Args:
        text_tests: CONTAINS, STARTSWITH and ENDSWITH are known (5.x).

    Raises:
        RequestError: SUBSCRIPTION_PARSE_FAILED (23), the text is not a filter expression; the remark says
            why.
    """
    compiled = _compile_short if len(text) <= _SHORT else _compile_long
    return compiled(text, text_tests)


def _compile(text: str, text_tests: bool) -> PropertyFilter:
    try:
        expression, rest = parse(text, text_tests=text_tests)
    except FilterError as error:
        # The words before the colon are RocketMQ's.
        raise RequestError(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"Invalid MessageSelector. : {error}"
        ) from None
    if rest:
        _log.warning("filter %s: the text after its end is ignored, as in RocketMQ: %.80r", expression, rest)
    return PropertyFilter(expression)


_compile_short = lru_cache(maxsize=1_024)(_compile)
_compile_long = lru_cache(maxsize=64)(_compile)
