"""Turns SIGBUS, by which Linux reports that a mapped file cannot be written, into an error of the writer.

A file system may refuse a write to a page of a mapping at any time: it was remounted read-only after an
error, or the file was made immutable (``chattr +i``). ``write`` would return an error; a mapping raises
SIGBUS, which ends the process. The handler here puts a private copy of the file's rest in place of the page,
so that the write goes on without effect on the file, and notes the cause. Writers call ``check`` before their
bytes count as written. The JVM does the same: RocketMQ gets an InternalError.

Mappings are faster here than ``pwrite`` (docs/benchmarks.md), and no call can say beforehand whether a write
will succeed: each flush protects the pages again.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import platform
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final
from weakref import ref

_log = logging.getLogger(__name__)

# Where siginfo_t has the signal's cause and address, on the machines below.
_CODE_AT: Final = 8
_ADDRESS_AT: Final = 16
_MACHINES: Final = ("x86_64", "aarch64")
_SA_SIGINFO: Final = 4
_MASK_BYTES: Final = 128
_MAP_FIXED: Final = 0x10
_MAP_NORESERVE: Final = 0x4000


class RefusedWrites:
    """Writes to mapped files that the system has refused, in this process.

    Attributes:
        error: the newest since the last ``check``, with the file's path; usually None.
    """

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: OSError | None = None

    def check(self) -> None:
        """Raise the error of a refused write since the last check, and forget it.

        Raises:
            OSError: some of the bytes did not reach their file.
        """
        if self.error is not None:
            error, self.error = self.error, None
            raise error


REFUSED_WRITES: Final = RefusedWrites()


class _Watched:
    """A mapping, as long as it exists, and the file that it shows.

    Attributes:
        start, end: its addresses.
        aside: address from which on a private copy is in its place.
    """

    __slots__ = ("_mapping", "aside", "end", "inode", "path", "start")

    def __init__(self, mapping: mmap.mmap, start: int, path: Path, inode: int) -> None:
        # Called before the addresses are free for another mapping.
        self._mapping = ref(mapping, lambda _: _watched.pop(start, None))
        self.start = start
        self.end = self.aside = start + len(mapping)
        self.path = path
        self.inode = inode


# By first address.
_watched: Final[dict[int, _Watched]] = {}


def watch_writes(mapping: mmap.mmap, path: Path, inode: int) -> None:
    """Note writes to this mapping of a file that the system refuses; do nothing where it cannot be done."""
    address_of = _install()
    if address_of is not None:
        start = address_of(mapping)
        _watched[start] = _Watched(mapping, start, path, inode)


@cache
def _install() -> Callable[[mmap.mmap], int] | None:
    """Install the handler; return the function that gives a mapping its address, or None without one."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES or sys.maxsize < 2**32:
        return None
    try:
        import ctypes

        libc: Any = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_long,
        )

        class Action(ctypes.Structure):
            """``struct sigaction`` of glibc and musl."""

            _fields_ = (
                ("handler", ctypes.c_void_p),
                ("mask", ctypes.c_ubyte * _MASK_BYTES),
                ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p),
            )

    except (ImportError, OSError, AttributeError):
        return None
    before = Action()

    def on_sigbus(number: int, info: int, _context: int) -> None:
        # The signal is synchronous: it interrupts a copy to or from a mapping, where Python code can run.
        code = ctypes.c_int.from_address(info + _CODE_AT).value
        address = ctypes.c_void_p.from_address(info + _ADDRESS_AT).value or 0
        if code > 0 and _put_aside(libc, address):
            return
        # The instruction faults again on return, now with the former handler: usually the process ends.
        libc.sigaction(number, ctypes.byref(before), None)
        if code <= 0:
            signal.raise_signal(number)

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(on_sigbus)
    # The system calls the function as long as the process lives.
    _kept.append(handler)
    action = Action(handler=ctypes.cast(handler, ctypes.c_void_p), flags=_SA_SIGINFO)
    if libc.sigaction(int(signal.SIGBUS), ctypes.byref(action), ctypes.byref(before)):
        return None
    return lambda mapping: ctypes.addressof(ctypes.c_char.from_buffer(mapping))


_kept: Final[list[object]] = []


def _put_aside(libc: Any, address: int) -> bool:
    """Put a private copy in place of a mapping from a page on, and note why; False if this is no write."""
    watched = next((each for each in list(_watched.values()) if each.start <= address < each.aside), None)
    if watched is None:
        return False
    page = address - address % mmap.PAGESIZE
    try:
        file = os.open(watched.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(file).st_ino != watched.inode or not _is_readable(
                file, page - watched.start, watched
            ):
                return False
            placed = libc.mmap(
                page,
                watched.aside - page,
                mmap.PROT_READ | mmap.PROT_WRITE,
                mmap.MAP_PRIVATE | _MAP_FIXED | _MAP_NORESERVE,
                file,
                page - watched.start,
            )
        finally:
            os.close(file)
    except OSError as error:
        # Such as too many open files.
        _log.critical("the process ends: cannot handle a refused write to %s: %s", watched.path, error)
        return False
    if placed != page:
        return False
    watched.aside = page
    REFUSED_WRITES.error = _cause(watched.path, page - watched.start)
    return True


def _is_readable(file: int, offset: int, watched: _Watched) -> bool:
    """Return True if the file has the page. Else the access may have been a read, and has no right result."""
    try:
        if os.pread(file, 1, offset):
            return True
        reason = f"it was cut to {os.fstat(file).st_size} bytes while it was mapped"
    except OSError as error:
        reason = error.strerror or str(error)
    _log.critical("the process ends: cannot read byte %d of %s: %s", offset, watched.path, reason)
    return False


def _cause(path: Path, offset: int) -> OSError:
    """Return the error that ``write`` has in place of the signal."""
    number = errno.EIO
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.pwrite(file, os.pread(file, 1, offset), offset)
        finally:
            os.close(file)
    except OSError as error:
        number = error.errno or number
    return OSError(number, os.strerror(number), str(path))
