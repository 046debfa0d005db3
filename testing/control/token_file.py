"""The file with the token of the control port."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.files.private import open_private

_TOKEN_BYTES: Final = 32
_MAX_BYTES: Final = 4_096
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}", re.ASCII)


def read_or_make_token(path: Path) -> str:
    """Return the token that a file has; a file that does not exist is made with a new token and mode 0600.

    Raises:
        ClusterError: the path names no regular file, other users may read the file, or it has no token.
        OSError: the file cannot be read or made.
    """
    try:
        with open_private(path, "xb") as file:
            token = secrets.token_urlsafe(_TOKEN_BYTES)
            file.write(f"{token}\n".encode())
            return token
    except FileExistsError:
        return _read(path)


def check_token_file(path: Path) -> None:
    """Raise the errors of ``read_or_make_token`` for a file that exists; make none."""
    if path.exists():
        _read(path)


def _read(path: Path) -> str:
    token = _read_start(path).decode("ascii", "replace").strip()
    if _TOKEN.fullmatch(token) is None:
        raise ClusterError(
            f"{path} has no token, which is 16 to 512 letters, digits or ._~+/=-: delete it, and rewindmq up"
            " makes a new one"
        )
    return token


def _read_start(path: Path) -> bytes:
    # A pipe opens at once, too, and is refused: without O_NONBLOCK, open() would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ClusterError(f"{path} is no regular file: name another --control-token-file")
        if mode & 0o077:
            raise ClusterError(f"other users may read or write the token in {path}: chmod 600 {path}")
        return os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
