"""Reads a file that an option names."""

from __future__ import annotations

from pathlib import Path

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.files.regular import NotRegularFileError, open_regular


def read_limited(path: str, limit: int, what: str) -> bytes:
    """Return the file's bytes, at most ``limit`` + 1 of them. It blocks: call it in a worker.

    Raises:
        ClientError: the file cannot be read, or is none.
    """
    if not path:
        raise ClientError(f"cannot read {what}: the option names no file")
    try:
        with open_regular(Path(path)) as file:
            return file.read(limit + 1)
    except NotRegularFileError:
        raise ClientError(
            f"cannot read {what} {path}: it is no regular file: save its content to one"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ClientError(f"cannot read {what} {path}: {reason}") from None
