"""Brings pages of a file into memory before they are written, without the interpreter's lock."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

# Since Linux 5.14; an earlier kernel refuses it. Python has no name for it.
_MADV_POPULATE_READ: Final = 22


@cache
def _populate() -> Callable[[mmap.mmap], object] | None:
    """Return the function that brings a mapping into memory; None where the system has none."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        madvise: Any = ctypes.CDLL(None).madvise
    except (ImportError, OSError, AttributeError):
        return None
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def populate(mapping: mmap.mmap) -> None:
        # ``mmap.madvise`` would keep the interpreter's lock, so no other thread could run meanwhile.
        first = ctypes.c_char.from_buffer(mapping)
        madvise(ctypes.addressof(first), len(mapping), _MADV_POPULATE_READ)

    return populate


def prefault(path: Path, start: int, end: int) -> None:
    """Bring the bytes from ``start`` to ``end`` of a file into memory; do nothing where the system cannot.

    This function maps the bytes itself, because the log's mapping finds the pages in the page cache anyway.
    If the log's mapping were populated for reading, its first write to each page would be a second fault.
    """
    populate = _populate()
    start -= start % mmap.ALLOCATIONGRANULARITY
    if populate is None or start >= end:
        return
    # OSError or ValueError: the file was deleted or cut meanwhile.
    with suppress(OSError, ValueError), path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), end - start, offset=start)
        populate(mapping)
        mapping.close()
