"""Errors and warnings of the test kit."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class KitError(RewindMQError):
    """The test asked for something that the kit or its cluster cannot do; the text says what to do."""


class NotSeenError(RewindMQError, AssertionError):
    """What the test waited for did not happen in time, or something happened that must not.

    It is an ``AssertionError``, so that test runners report a failure of the test, not of its set-up.
    """


class KitWarning(UserWarning):
    """The test left something behind that the kit has cleaned up."""
