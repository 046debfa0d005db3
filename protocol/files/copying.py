"""Copies files with their holes, sharing disk blocks where the file system can."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from pathlib import Path
from typing import Final

from rewindmq.protocol.files.private import open_private

# Linux: the target takes the source's blocks; a later write to either gets blocks of its own (btrfs, XFS).
_FICLONE: Final = 0x40049409
_CHUNK_BYTES: Final = 1_048_576
_NOT_SUPPORTED: Final = frozenset((errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file that nothing else writes meanwhile, with its holes and its modification time.

    The target gets mode 0600, whatever the source's mode.

    Raises:
        FileExistsError: the target exists.
        OSError: a file cannot be read or written; a part of the target may be left.
    """
    with source.open("rb") as reading, open_private(target, "xb") as writing:
        status = os.fstat(reading.fileno())
        try:
            fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
        except OSError:
            os.truncate(writing.fileno(), status.st_size)
            for start, end in data_extents(reading.fileno(), status.st_size):
                _copy_range(reading.fileno(), writing.fileno(), start, end)
        os.utime(writing.fileno(), ns=(status.st_mtime_ns, status.st_mtime_ns))


def data_extents(descriptor: int, size: int) -> list[tuple[int, int]]:
    """Return start and end of each part of a file that is no hole; all of it if holes are not reported."""
    extents = []
    at = 0
    while at < size:
        try:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            return [(0, size)]
        at = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        extents.append((start, at))
    return extents


def _copy_range(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        copied = _copy_some(source, target, start, end - start)
        if copied == 0:
            # The source has become shorter.
            return
        start += copied


def _copy_some(source: int, target: int, start: int, count: int) -> int:
    if sys.platform == "linux":
        try:
            return os.copy_file_range(source, target, count, start, start)
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    return os.pwrite(target, os.pread(source, min(_CHUNK_BYTES, count), start), start)
