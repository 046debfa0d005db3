"""Creates files and folders for their owner only, whatever the umask: they hold messages and settings.

Existing files and folders keep their modes.
"""

from __future__ import annotations

import os
from io import BufferedWriter
from pathlib import Path
from typing import Final, Literal

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700


def make_private_folder(path: Path) -> None:
    """Make a folder and its missing parents with mode 0700; do nothing if it exists.

    Raises:
        OSError: it cannot be made, or is a file.
    """
    try:
        path.mkdir(FOLDER_MODE, exist_ok=True)
    except FileNotFoundError:
        # ``Path.mkdir(parents=True)`` gives the parents the umask's mode.
        if path.parent == path:
            raise
        make_private_folder(path.parent)
        path.mkdir(FOLDER_MODE, exist_ok=True)


def open_private(path: Path, mode: Literal["wb", "xb", "ab"]) -> BufferedWriter:
    """Open a file for writing as ``open`` does; a new file has mode 0600.

    Raises:
        OSError: it cannot be opened, or is a pipe that no process reads.
    """
    return open(path, mode, opener=_open)


def _open(path: str, flags: int) -> int:
    # Without O_NONBLOCK, a pipe is opened only when it has a reader.
    return os.open(path, flags | os.O_NONBLOCK, FILE_MODE)
