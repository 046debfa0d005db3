"""Where a report goes: found out before the run rather than after it."""

from __future__ import annotations

import os
from pathlib import Path

from rewindmq.race.errors import RaceError


def require_writable(path: Path) -> None:
    """Leaves nothing behind, so that an interrupted run does not either.

    Raises:
        RaceError: no file can be written there.
    """
    folder = path.parent
    if path.is_dir():
        raise RaceError(f"cannot write {path}: it is a directory")
    if not folder.is_dir():
        raise RaceError(f"cannot write {path}: there is no directory {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise RaceError(f"cannot write {path}: permission denied")
