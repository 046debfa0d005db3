"""The C library's allocator in a server process: freed memory stays with the process."""

from __future__ import annotations

from typing import Final

# glibc's mallopt(3).
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# More than the reads, records and responses of one turn of the event loop.
_KEPT_BYTES: Final = 4_194_304


def keep_freed_memory() -> None:
    """Let the allocator trim the heap only above 4 MiB of free memory at its top; do nothing without glibc.

    Blocks below 4 MiB come from the heap, and larger ones from mappings of their own. glibc's first limit is
    128 KiB: then the memory of a large read goes back to the system when the read has been handled. The next
    read gets new pages, and each costs a page fault (docs/benchmarks.md).
    """
    try:
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
    except (ImportError, OSError, AttributeError):
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
