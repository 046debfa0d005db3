"""SnapshotFolder: the files that the control port may save snapshots to and load them from."""

from __future__ import annotations

import re
import stat
from http import HTTPStatus
from pathlib import Path
from typing import Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.files.private import make_private_folder
from rewindmq.testing.control.http_request import HttpError

# One name: no separator, so no path out of the folder. No other kind of file can be replaced.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,123}\.tar", re.ASCII)


class SnapshotFolder:
    """One folder; a file in it is chosen by its name alone.

    Args:
        folder: made at the first save if it does not exist.

    Raises:
        ClusterError: ``folder`` is not a folder.
    """

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise ClusterError(f"{folder} is not a folder: choose another --control-snapshot-dir")
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names of the files, sorted; other programs may delete files meanwhile."""
        try:
            return sorted(path.name for path in self._folder.iterdir() if _is_usable(path))
        except FileNotFoundError:
            return []

    def to_write(self, name: str) -> Path:
        """Return the path of a file that is made or replaced.

        Raises:
            HttpError: the name is wrong, or names something that is no file.
            OSError: the folder cannot be made.
        """
        path = self._path(name)
        make_private_folder(self._folder)
        return path

    def to_read(self, name: str) -> Path:
        """Return the path of a file; errors as in ``to_write``, and if there is none."""
        path = self._path(name)
        if not path.exists():
            known = ", ".join(self.names()) or "none"
            text = f"there is no file {name} in {self._folder}; files: {known}"
            raise HttpError(HTTPStatus.NOT_FOUND, text)
        return path

    def _path(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise HttpError(
                HTTPStatus.BAD_REQUEST,
                f"file is the name of a file in {self._folder}: letters, digits, '.', '_' and '-', beginning"
                f" with a letter or digit and ending with .tar, at most 128 characters; not {name[:200]!r}",
            )
        path = self._folder / name
        mode = _mode(path)
        if mode is not None and not stat.S_ISREG(mode):
            raise HttpError(HTTPStatus.CONFLICT, f"{path} is a link, or no file: choose another name")
        return path


def _is_usable(path: Path) -> bool:
    """Return True for a file itself: a link may lead out of the folder, a pipe would never end."""
    mode = _mode(path)
    return _NAME.fullmatch(path.name) is not None and mode is not None and stat.S_ISREG(mode)


def _mode(path: Path) -> int | None:
    """Return the mode of a file or link itself; None if it does not exist."""
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None
