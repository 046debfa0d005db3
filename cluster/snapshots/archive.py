"""A snapshot as one file: a tar archive that begins with the snapshot's header and ends with checksums.

The files are the members between them, in the header's order. A member has the bytes up to the end of its
file's data; the rest of the file, up to the size in the header, is a hole. The last member has the SHA-256 of
each other member, in the form that ``sha256sum --check`` reads.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from pathlib import Path
from typing import IO, Final, cast

import msgspec

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.snapshots.header import HEADER_NAME, SnapshotFile, SnapshotHeader, decode_header
from rewindmq.protocol.files.copying import data_extents
from rewindmq.protocol.files.private import make_private_folder, open_private

_MAX_HEADER_BYTES: Final = 67_108_864
_FILES: Final = "files/"
_CHECKSUMS_NAME: Final = "snapshot.sha256"
_CHUNK_BYTES: Final = 1_048_576


class _Hashing:
    """Reads a file, and knows the checksum of what it has read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._hash = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        data = self._source.read(size)
        self._hash.update(data)
        return data

    def line(self, name: str) -> bytes:
        """Return the line of a member in the checksums."""
        return f"{self._hash.hexdigest()}  {name}\n".encode("utf-8", "surrogatepass")


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
            checksums = _add(archive, HEADER_NAME, len(data), io.BytesIO(data))
            for each in header.files:
                with (folder / each.path).open("rb") as source:
                    checksums += _add(archive, _FILES + each.path, _data_end(source.fileno()), source)
            archive.addfile(_member(_CHECKSUMS_NAME, len(checksums)), io.BytesIO(checksums))
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
                header, checksums = _read_header(archive, path)
                for each in header.files:
                    checksums += _extract(archive, each, folder, path)
                _check(archive, checksums, path)
                _refuse_padding(archive, file, path)
        except (tarfile.TarError, EOFError) as error:
            raise ClusterError(f"{path} is not a snapshot, or is truncated: {error}") from None
    return header


def _read_header(archive: tarfile.TarFile, path: Path) -> tuple[SnapshotHeader, bytes]:
    """Return the header and its line of the checksums."""
    member = archive.next()
    if member is None or member.name != HEADER_NAME or not member.isreg() or member.size > _MAX_HEADER_BYTES:
        raise ClusterError(f"{path} is not a snapshot: it does not begin with {HEADER_NAME}")
    source = _source(archive, member)
    data = source.read(member.size)
    return decode_header(data, str(path)), source.line(HEADER_NAME)


def _extract(archive: tarfile.TarFile, file: SnapshotFile, folder: Path, path: Path) -> bytes:
    """Write the next member, whose name must be the one that the header says; return its line."""
    member = archive.next()
    if member is None:
        raise ClusterError(f"{path} is truncated: it lacks {file.path}")
    if member.name != _FILES + file.path or not member.isreg() or member.size > file.size:
        raise ClusterError(f"{path} is damaged: {member.name[:200]!r} is in the place of {file.path}")
    target = folder / file.path
    make_private_folder(target.parent)
    source = _source(archive, member)
    with open_private(target, "xb") as writing:
        shutil.copyfileobj(source, writing, _CHUNK_BYTES)
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
    return source.line(member.name)


def _check(archive: tarfile.TarFile, checksums: bytes, path: Path) -> None:
    """Compare the checksums of the members that were read with the archive's.

    Args:
        checksums: the lines of the members that were read.
    """
    member = archive.next()
    if member is None:
        raise ClusterError(
            f"{path} has no checksums: it is truncated, or of an earlier RewindMQ; save the snapshot again"
        )
    is_whole = member.name == _CHECKSUMS_NAME and member.isreg() and member.size == len(checksums)
    if not is_whole:
        raise ClusterError(f"{path} is damaged: {member.name[:200]!r} is in the place of {_CHECKSUMS_NAME}")
    saved = _source(archive, member).read(member.size)
    for line, expected in zip(checksums.splitlines(), saved.splitlines(), strict=False):
        if line != expected:
            name = line.partition(b"  ")[2].decode("utf-8", "replace")
            raise ClusterError(f"{path} is damaged: {name} is not what was saved; save the snapshot again")
    if checksums != saved:
        raise ClusterError(f"{path} is damaged in {_CHECKSUMS_NAME}: save the snapshot again")
    if (more := archive.next()) is not None:
        raise ClusterError(f"{path} is damaged: it has {more.name[:200]!r} behind the checksums")


def _refuse_padding(archive: tarfile.TarFile, file: IO[bytes], path: Path) -> None:
    """Check that the bytes between the members and behind them are zero: other ones are damage, too."""
    members = archive.getmembers()
    ends = [member.offset_data + member.size for member in members]
    begins = [*(member.offset for member in members[1:]), None]
    for end, begin in zip(ends, begins, strict=True):
        file.seek(end)
        padding = file.read(tarfile.RECORDSIZE if begin is None else begin - end)
        if padding.strip(b"\0"):
            raise ClusterError(f"{path} is damaged behind one of its files: save the snapshot again")
    if file.read(1) or file.tell() % tarfile.RECORDSIZE:
        raise ClusterError(f"{path} is damaged at its end: save the snapshot again")


def _add(archive: tarfile.TarFile, name: str, size: int, source: IO[bytes]) -> bytes:
    """Add a member; return its line of the checksums."""
    hashing = _Hashing(source)
    archive.addfile(_member(name, size), cast("IO[bytes]", hashing))
    return hashing.line(name)


def _source(archive: tarfile.TarFile, member: tarfile.TarInfo) -> _Hashing:
    source = archive.extractfile(member)
    assert source is not None
    return _Hashing(source)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def _data_end(descriptor: int) -> int:
    """Return where the data of a file ends, and go to its start."""
    extents = data_extents(descriptor, os.fstat(descriptor).st_size)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return extents[-1][1] if extents else 0
