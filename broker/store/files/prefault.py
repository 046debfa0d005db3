"""Brings pages of a mapped file into memory before they are written, without the interpreter's lock."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final

# Since Linux 5.14; an earlier kernel refuses it. Python has no name for it.
_MADV_POPULATE_READ: Final = 22


@cache
def _populate() -> Callable[[mmap.mmap, int, int], object] | None:
    """Return the function that does it; None where the system has none."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        madvise: Any = ctypes.CDLL(None).madvise
    except (ImportError, OSError, AttributeError):
        return None
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def populate(mapping: mmap.mmap, start: int, length: int) -> None:
        # This object keeps the mapping during the call.
        first = ctypes.c_char.from_buffer(mapping, start)
        madvise(ctypes.addressof(first), length, _MADV_POPULATE_READ)

    return populate


def prefault(mapping: mmap.mmap, start: int, end: int) -> None:
    """Bring the bytes from ``start`` to ``end`` into memory, unchanged; do nothing where the system cannot.

    ``mmap.madvise`` would keep the interpreter's lock, so no other thread could run meanwhile.
    """
    populate = _populate()
    start -= start % mmap.PAGESIZE
    if populate is not None and start < end:
        populate(mapping, start, end - start)
