"""Takes away what lets root read and write every file, so that modes of files count in a test."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# From linux/capability.h: version 3 of the call, and the two capabilities that overrule the modes of files.
_VERSION: Final = 0x20080522
_OVERRULES_MODES: Final = 1 << 1 | 1 << 2
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def _call(name: str, words: ctypes.Array[_Capabilities]) -> None:
    # Process 0 is the calling thread.
    if getattr(_LIBC, name)(ctypes.byref(_Header(_VERSION, 0)), words):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


@contextmanager
def file_modes_count() -> Iterator[None]:
    """Let the modes of files count for this thread, and for the threads and processes that it starts.

    No other user takes part, so a checkout that only its owner may enter does not matter.
    """
    words = (_Capabilities * 2)()
    _call("capget", words)
    before = words[0].effective
    words[0].effective &= ~_OVERRULES_MODES
    _call("capset", words)
    try:
        yield
    finally:
        words[0].effective = before
        _call("capset", words)
