"""Descriptors and mappings of this process, or of another, by the path of their file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def open_below(folder: Path, pid: int | str = "self") -> list[str]:
    """Return the files below a folder, deleted or not, which a process has open or mapped."""
    found = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        found += line.split(maxsplit=5)[5:]
    return sorted({path for path in found if path.startswith(f"{folder}/")})
