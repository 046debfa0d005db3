"""What the store raises."""

from __future__ import annotations

from rewindmq.protocol.errors import RewindMQError


class StoreError(RewindMQError):
    """The store cannot be opened, or cannot go on writing: one line that names the file and what is wrong."""
