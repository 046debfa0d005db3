"""Errors of the store."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class StoreError(RewindMQError):
    """The store cannot be opened or written; the text is one line that names the file and the cause."""
