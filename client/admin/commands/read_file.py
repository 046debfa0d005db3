"""Reads a file that an option names."""

from __future__ import annotations

from pathlib import Path

from rewindmq.protocol.errors import ClientError


def read_limited(path: str, limit: int, what: str) -> bytes:
    """Return the file's bytes, at most ``limit`` + 1 of them. It blocks: call it in a worker.

    Raises:
        ClientError: the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ClientError(f"cannot read {what} {path}: {reason}") from None
