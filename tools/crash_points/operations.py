"""What a store does to its disk, in the order in which a power failure can cut it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

# A disk writes whole sectors; the system writes pages back in any order.
SECTOR_BYTES: Final = 512
PAGE_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True)
class FolderMade:
    """A folder was made; its name is in its parent."""

    path: Path


@dataclass(frozen=True, slots=True)
class Named:
    """An empty file was created."""

    path: Path
    file: int
    is_mapped: bool


@dataclass(frozen=True, slots=True)
class Sized:
    """A file has got its size, filled with zeros."""

    path: Path
    file: int
    size: int


@dataclass(frozen=True, slots=True)
class SectorWritten:
    """A sector of a mapped file has changed."""

    path: Path
    file: int
    sector: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A small file was truncated and written as a whole."""

    path: Path
    file: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Synced:
    """A file's content and size are durable; its name is not."""

    path: Path
    file: int


@dataclass(frozen=True, slots=True)
class FolderSynced:
    """The names in a folder are durable."""

    path: Path


@dataclass(frozen=True, slots=True)
class Renamed:
    """A file has got another name in the same folder."""

    path: Path
    target: Path


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A file's name was removed."""

    path: Path


Operation = (
    FolderMade | Named | Sized | SectorWritten | Rewritten | Synced | FolderSynced | Renamed | Unlinked
)
