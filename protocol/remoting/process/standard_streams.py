"""Handles standard streams that are closed or that accept no more output."""

from __future__ import annotations

import os
import sys
from typing import Final

# By descriptor: the name in ``sys`` and the mode.
_STREAMS: Final = {0: ("stdin", "r"), 1: ("stdout", "w"), 2: ("stderr", "w")}


def open_closed_streams() -> None:
    """Open the null device in place of each standard stream that the process was started without.

    Call it before you open anything else: otherwise the next file or socket gets the free descriptor, and
    printed text is written into it. libuv also aborts a process that closes one of these descriptors.
    """
    for descriptor, (name, mode) in _STREAMS.items():
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor)
            # Never closed, like the interpreter's own streams.
            stream = open(descriptor, mode, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def discard_unwritten() -> None:
    """Discard output that cannot be written; otherwise the interpreter fails on it at exit."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            _open_null(descriptor)


def _open_null(descriptor: int) -> None:
    """Point a standard descriptor, which child processes inherit, to the null device."""
    opened = os.open(os.devnull, os.O_RDWR)
    if opened == descriptor:
        os.set_inheritable(opened, True)
    else:
        os.dup2(opened, descriptor)
        os.close(opened)
