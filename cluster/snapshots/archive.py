"""A snapshot as one file: a tar archive that begins with the snapshot's header.

The members follow in the header's order. A member has the bytes up to the end of its file's data; the rest of
the file, up to the size in the header, is a hole.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path
from typing import Final

import msgspec

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.snapshots.header import HEADER_NAME, SnapshotFile, SnapshotHeader, decode_header
from rewindmq.protocol.files.copying import data_extents
from rewindmq.protocol.files.private import make_private_folder, open_private

_MAX_HEADER_BYTES: Final = 67_108_864
_FILES: Final = "files/"


def write_archive(folder: Path, header: SnapshotHeader, path: Path) -> None:
    """Write the snapshot in ``folder`` to a file, which appears when it is complete.

    Raises:
        OSError: the disk fails.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        # A link of this name would lead elsewhere.
        temporary.unlink(missing_ok=True)
        with open_private(temporary, "xb") as file, tarfile.open(fileobj=file, mode="w") as archive:
            data = msgspec.json.encode(header)
            archive.addfile(_member(HEADER_NAME, len(data)), io.BytesIO(data))
            for each in header.files:
                with (folder / each.path).open("rb") as source:
                    size = _data_end(source.fileno())
                    archive.addfile(_member(_FILES + each.path, size), source)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_archive(path: Path, folder: Path) -> SnapshotHeader:
    """Read a file of ``write_archive`` into a new folder; write nothing elsewhere.

    Raises:
        ClusterError: the file is missing, no snapshot, of another version, truncated or damaged.
        OSError: the disk fails.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise ClusterError(f"cannot read {path}: {error.strerror}") from None
    with file:
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                header = _read_header(archive, path)
                for each in header.files:
                    _extract(archive, each, folder, path)
        except tarfile.TarError as error:
            raise ClusterError(f"{path} is not a snapshot, or is truncated: {error}") from None
    return header


def _read_header(archive: tarfile.TarFile, path: Path) -> SnapshotHeader:
    member = archive.next()
    if member is None or member.name != HEADER_NAME or not member.isreg() or member.size > _MAX_HEADER_BYTES:
        raise ClusterError(f"{path} is not a snapshot: it does not begin with {HEADER_NAME}")
    source = archive.extractfile(member)
    assert source is not None
    return decode_header(source.read(), str(path))


def _extract(archive: tarfile.TarFile, file: SnapshotFile, folder: Path, path: Path) -> None:
    """Write the next member; its name must be the one that the header says."""
    member = archive.next()
    if member is None:
        raise ClusterError(f"{path} is truncated: it lacks {file.path}")
    if member.name != _FILES + file.path or not member.isreg() or member.size > file.size:
        raise ClusterError(f"{path} is damaged: {member.name[:200]!r} is in the place of {file.path}")
    target = folder / file.path
    make_private_folder(target.parent)
    source = archive.extractfile(member)
    assert source is not None
    with open_private(target, "xb") as writing:
        shutil.copyfileobj(source, writing, 1_048_576)
        if writing.tell() != member.size:
            raise ClusterError(f"{path} is truncated in {file.path}")
        try:
            writing.truncate(file.size)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ClusterError(f"{path}: cannot make {file.path}: {reason}") from None
    try:
        os.utime(target, ns=(file.mtime_ns, file.mtime_ns))
    except (OSError, OverflowError):
        raise ClusterError(f"{path} is damaged: {file.path} has no valid time") from None


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def _data_end(descriptor: int) -> int:
    """Return where the data of a file ends, and go to its start."""
    extents = data_extents(descriptor, os.fstat(descriptor).st_size)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return extents[-1][1] if extents else 0
