"""Names of files and folders that a power failure may still take away.

Syncing a file makes its content durable. POSIX promises its name only after a sync of its folder, and the
folder's own name after a sync of that folder's parent.
"""

from __future__ import annotations

from pathlib import Path


class UnsyncedNames:
    """Collects new names on the event loop's thread; a thread that syncs a file takes its names."""

    def __init__(self) -> None:
        self._names: set[Path] = set()

    def add(self, path: Path) -> None:
        """Note a new file or folder."""
        self._names.add(path)

    def drop(self, path: Path) -> None:
        """Forget a file that is removed."""
        self._names.discard(path)

    def take(self, path: Path) -> list[Path]:
        """Return the new names of a path, the innermost first, and forget them; empty if it is durable."""
        taken = []
        for name in (path, *path.parents):
            if name not in self._names:
                break
            # Before the sync, so that a file that is removed and created again meanwhile is noted again.
            self._names.discard(name)
            taken.append(name)
        return taken
