"""Standard streams that are closed, or that take nothing any more: what every command does about them."""

from __future__ import annotations

import os
import sys
from typing import Final

# By descriptor: the name in ``sys``, and how it is opened.
_STREAMS: Final = {0: ("stdin", "r"), 1: ("stdout", "w"), 2: ("stderr", "w")}


def open_closed_streams() -> None:
    """Open the null device in place of each standard stream that the process was started without.

    Call it before anything else is opened: the next file or socket would get the free descriptor, and with it
    what is printed; libuv ends the process when it is to close one of these.
    """
    for descriptor, (name, mode) in _STREAMS.items():
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor)
            # Never closed, as the interpreter's own are not.
            stream = open(descriptor, mode, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def discard_unwritten() -> None:
    """Let go of output that cannot be written; the interpreter would fail on it at its end."""
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            _open_null(descriptor)


def _open_null(descriptor: int) -> None:
    """Have a standard descriptor, which child processes inherit, refer to the null device."""
    opened = os.open(os.devnull, os.O_RDWR)
    if opened == descriptor:
        os.set_inheritable(opened, True)
    else:
        os.dup2(opened, descriptor)
        os.close(opened)
