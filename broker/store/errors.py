"""Errors of the store."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class StoreError(RewindMQError):
    """The store cannot be opened, or cannot write: one line with the file and the cause."""
