"""Errors of filter expressions: in parsing and in evaluation."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class FilterError(RewindMQError):
    """A text is not a filter expression; one line that says where and why."""


class EvaluationError(Exception):
    """A property cannot be compared as the expression requires; the message does not match."""
