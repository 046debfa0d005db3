"""The ``lock`` file: only one store of one process may use a directory at a time (docs/spec/store.md 7)."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.files.private import FILE_MODE

# A POSIX lock does not exclude a second store in the same process, and is lost when the process closes any
# descriptor of the file. This set therefore records the files that this process has locked.
_held: set[tuple[int, int]] = set()


class StoreLock:
    """An exclusive POSIX lock on byte 0, the range a RocketMQ broker locks too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._identity = (-1, -1)

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            StoreError: another store holds it, or the file cannot be created.
        """
        try:
            if self._path.exists() and _identity(self._path.stat()) in _held:
                raise self._taken()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        except OSError as error:
            raise StoreError(f"cannot open {self._path}: {error.strerror}") from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "is no regular file")
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            os.pwrite(descriptor, b"lock", 0)
        except BlockingIOError:
            os.close(descriptor)
            raise self._taken() from None
        except OSError as error:
            os.close(descriptor)
            raise StoreError(f"cannot lock {self._path}: {error.strerror}") from None
        self._descriptor = descriptor
        self._identity = _identity(os.fstat(descriptor))
        _held.add(self._identity)

    def release(self) -> None:
        """Release the lock; do nothing if it is not held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _held.discard(self._identity)

    def _taken(self) -> StoreError:
        return StoreError(
            f"the store {self._path.parent} is in use by another broker (its lock file is locked)"
        )


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
