"""TemporaryFolder: a folder that is removed at its end, or by a later process if its owner was killed.

The owner holds a lock on a file of the folder, as do processes that inherit the descriptor. The kernel frees
the lock when the last of them has ended, however it ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rewindmq.protocol.files.private import FILE_MODE

PREFIX: Final = "rewindmq-"
# Only a folder with this file is ever removed.
_LOCK: Final = ".rewindmq-owner"
_NEW_LOCK: Final = f"{_LOCK}.new"
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_LOCK: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class TemporaryFolder:
    """A new private folder of the system's folder for temporary files, until ``remove``.

    Making one removes those that killed processes have left.

    Args:
        what: follows ``rewindmq-`` in its name, such as ``race-``.

    Attributes:
        path: the folder.
        descriptor: let child processes that write to the folder inherit it.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, what: str = "") -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX + what))
        try:
            # Under its own name it is locked from the beginning.
            new = self.path / _NEW_LOCK
            self.descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(self.path / _LOCK)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Remove the folder with its files; a second call does nothing."""
        if self.descriptor < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.descriptor)
        self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def remove_abandoned() -> list[Path]:
    """Remove the folders of ended processes of this user, and return them.

    A folder stays if a process holds its lock, if another user owns it or could write to it, if it has no
    lock, or if its name is a link. Errors leave the rest of a folder to the next call.
    """
    removed = []
    with contextlib.suppress(OSError):
        for path in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
            with contextlib.suppress(OSError), _abandoned(path) as folder:
                if folder is not None:
                    _remove(path, folder)
                    removed.append(path)
    return removed


@contextlib.contextmanager
def _abandoned(path: Path) -> Iterator[int | None]:
    """Lock a folder that no process uses, and yield its descriptor; None: it is no such folder."""
    with contextlib.ExitStack() as stack:
        folder = os.open(path, _OPEN_FOLDER)
        stack.callback(os.close, folder)
        if not _is_own(os.fstat(folder)):
            yield None
            return
        lock = os.open(_LOCK, _OPEN_LOCK, dir_fd=folder)
        stack.callback(os.close, lock)
        status = os.fstat(lock)
        if not (stat.S_ISREG(status.st_mode) and _is_own(status)):
            yield None
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield folder


def _is_own(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _remove(path: Path, folder: int) -> None:
    """Remove what the open folder has, whatever its name leads to meanwhile; the lock goes last."""
    for name in os.listdir(folder):
        if name == _LOCK:
            continue
        if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    os.unlink(_LOCK, dir_fd=folder)
    path.rmdir()
