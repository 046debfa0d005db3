"""Errors of the store."""

from __future__ import annotations

import os

from rewindmq.protocol.errors import RewindMQError


class StoreError(RewindMQError):
    """The store cannot be opened or written; the text is one line that names the file and the cause."""


def cause_of(error: OSError) -> str:
    """Return path and reason of a failed call of the disk: ``/store/checkpoint: No space left on device``."""
    reason = error.strerror or (os.strerror(error.errno) if error.errno else str(error))
    return reason if error.filename is None else f"{error.filename}: {reason}"
