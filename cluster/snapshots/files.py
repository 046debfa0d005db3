"""Copies the files of a snapshot; links the files that never change."""

from __future__ import annotations

import os
from pathlib import Path

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.snapshots.header import SnapshotFile
from rewindmq.protocol.files.copying import copy_file
from rewindmq.protocol.files.private import make_private_folder


class FileCopier:
    """Fills one folder; makes missing folders once."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._known: set[Path] = set()

    def add(self, source: Path, relative: str, *, is_full: bool) -> Path:
        """Link a full file and copy another; return the new path.

        Raises:
            OSError: the file is missing, or the disk fails.
        """
        path = self._target / relative
        if path.parent not in self._known:
            make_private_folder(path.parent)
            self._known.add(path.parent)
        if is_full:
            try:
                os.link(source, path)
                return path
            except OSError:
                # The file system has no links, or too many of this file.
                path.unlink(missing_ok=True)
        copy_file(source, path)
        return path


def put_back(snapshot: Path, file: SnapshotFile, copier: FileCopier) -> None:
    """Give a cluster one file of a snapshot, with the modification time that it had.

    Raises:
        ClusterError: the file is missing, or has another size.
        OSError: the disk fails.
    """
    source = snapshot / file.path
    try:
        size = source.lstat().st_size
    except FileNotFoundError:
        raise ClusterError(f"{source} is missing: take the snapshot again") from None
    if size != file.size:
        raise ClusterError(
            f"{source} is damaged, it has {size} bytes, not {file.size}: take the snapshot again"
        )
    path = copier.add(source, file.path, is_full=file.is_full)
    if path.stat().st_mtime_ns != file.mtime_ns:
        os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
