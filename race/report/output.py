"""Write a report atomically, and check before the run that it can be written."""

from __future__ import annotations

import os
from pathlib import Path

from rewindmq.race.errors import RaceError


def write_report(path: Path, text: str) -> None:
    """Write ``text`` to ``path``; replace an existing file atomically.

    Raises:
        RaceError: the file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if path.is_dir():
            raise RaceError(f"cannot write {path}: it is a directory")
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise RaceError(f"cannot write {path}: {error.strerror or error}") from None


def require_writable(path: Path) -> None:
    """Check before a run that its report can be written; create no file.

    Raises:
        RaceError: the file cannot be written.
    """
    folder = path.parent
    if path.is_dir():
        raise RaceError(f"cannot write {path}: it is a directory")
    if not folder.is_dir():
        raise RaceError(f"cannot write {path}: there is no directory {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise RaceError(f"cannot write {path}: permission denied")
