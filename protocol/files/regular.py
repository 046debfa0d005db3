"""Tells regular files from other entries of a folder: a pipe or a device may never end, or never begin."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Final

# A file system's own folder at the place where it is mounted; only root may read it.
LOST_AND_FOUND: Final = "lost+found"


class NotRegularFileError(OSError):
    """The path names a pipe, a device or a socket."""


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading during a ``with`` statement. This never waits for a writer.

    Raises:
        NotRegularFileError: the path names something else.
        OSError: it cannot be opened, or is a folder.
    """
    with open(path, "rb", opener=_open) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotRegularFileError(errno.EINVAL, "is no regular file", str(path))
        yield file


def _open(path: str, flags: int) -> int:
    # Without O_NONBLOCK, a pipe is opened only when it has a writer.
    return os.open(path, flags | os.O_NONBLOCK)
