"""Mark: a moment between the messages of a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment: messages sent before have an earlier store timestamp, messages sent after it have not.

    Attributes:
        at_ms: ms since 1970.
        sent: how many messages the test had sent.
    """

    at_ms: int
    sent: int
