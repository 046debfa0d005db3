"""The list of a store's files that a frozen broker writes for those who copy the store."""

from __future__ import annotations

from typing import Final

import msgspec

FILE_LIST: Final = "files.json"


class StoreFiles(msgspec.Struct, frozen=True):
    """Paths relative to the store's directory, with ``/``.

    Attributes:
        full: files that are never written again; a copy may be a hard link.
        growing: all others.
    """

    full: list[str]
    growing: list[str]
