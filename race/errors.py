"""Errors of the laboratory that are meant for its user."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class RaceError(RewindMQError):
    """Something asked of the laboratory cannot be done; one line that says why and what to do."""
