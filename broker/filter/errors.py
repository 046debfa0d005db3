"""What can be wrong with a filter expression, and with a message it is asked about."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class FilterError(RewindMQError):
    """A text that is no filter expression; one line that says where and why."""


class EvaluationError(Exception):
    """A property that cannot be compared as the expression asks; the message does not match."""
