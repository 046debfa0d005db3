"""Errors that the laboratory reports to its user."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class RaceError(RewindMQError):
    """The laboratory cannot do what was asked; the text is one line with the reason and the way out."""
