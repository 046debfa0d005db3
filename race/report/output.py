"""Puts a report where it was asked for, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from rewindmq.race.errors import RaceError


def write_report(path: Path, text: str) -> None:
    """Write ``text`` to ``path``; what was there is replaced in one step.

    Raises:
        RaceError: the file cannot be written there.
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
