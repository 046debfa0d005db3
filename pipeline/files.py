"""File access for drivers and workers: local disks, HDFS and object stores.

Workers read ranges of log segments, which Spark's own readers do not offer. ``pyarrow.fs`` resolves the
paths. Objects of all classes here can be pickled, because plans travel from the driver to workers.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from rewindmq.pipeline.errors import PipelineError
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.files.regular import LOST_AND_FOUND, open_regular
from rewindmq.protocol.names import relative_path

_LOCAL_SCHEMES: Final = ("", "file")
_ZEROS: Final = bytes(1 << 20)
_COPY_BYTES: Final = 1 << 20
# URI schemes that Hadoop and pyarrow name differently.
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}


class FileEntry(NamedTuple):
    """A file or folder, as a folder's listing shows it.

    Attributes:
        size: bytes of a file; 0 for a folder.
        mtime_ms: last modification; 0 if the file system does not report it.
        is_special: neither of both: a pipe, a device, a socket, or a link to one or to nothing.
    """

    name: str
    is_file: bool
    size: int
    mtime_ms: int
    is_special: bool = False


def check_kind(entry: FileEntry, folder: str, *, needs_file: bool = False) -> None:
    """Refuse a store in which something else is in the place of a file or folder.

    Raises:
        PipelineError: the entry is neither file nor folder, or must be a file.
    """
    if entry.is_special or (needs_file and not entry.is_file):
        kind = "a pipe, a device, a socket or a link to nothing" if entry.is_special else "a folder"
        raise PipelineError(f"the store is damaged: {folder}/{entry.name} is no regular file, but {kind}")


class ReadableFiles(Protocol):
    """Read access to one file system. Paths are absolute, with ``/``; every method raises OSError."""

    def list(self, folder: str) -> list[FileEntry]:
        """Return a folder's entries by name; none if the folder does not exist.

        The folder ``lost+found`` of a mounted file system is not among them.
        """

    def entry(self, path: str) -> FileEntry | None:
        """Return one file or folder; None if it does not exist."""

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``offset`` on; fewer only at the end of the file."""

    def data_range(self, path: str, offset: int) -> tuple[int, int] | None:
        """Return start and end of the next part, from ``offset`` on, that may hold bytes other than zero.

        None if only zeros follow.
        """

    def read_all(self, path: str) -> bytes | None:
        """Return the content of a small file; None if it does not exist."""


class Files(ReadableFiles, Protocol):
    """Read and write access to one file system."""

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading at any position."""

    def create(self, path: str) -> BinaryIO:
        """Open a new file for writing; replace an existing one, create missing parent folders."""

    def fill(self, file: BinaryIO, count: int) -> None:
        """Append ``count`` zero bytes; as a hole if the file system supports holes."""

    def publish(self, path: str, data: bytes) -> None:
        """Replace a small file atomically: readers see the old or the new content, also after a crash."""

    def make_folder(self, path: str) -> None:
        """Create a folder and its missing parents."""

    def remove_tree(self, path: str) -> None:
        """Remove a folder or file; do nothing if it does not exist."""

    def link(self, source: str, target: str) -> None:
        """Give ``target`` the content of ``source``, without copying if the file system supports links."""

    def move(self, source: str, target: str) -> None:
        """Rename a folder or file, atomically if the file system supports it."""

    def sync(self, path: str) -> None:
        """Make a written file durable, if the file system leaves that to its caller."""

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set the modification time, if the file system allows it."""


def open_files(location: str | Path) -> tuple[Files, str]:
    """Return the file system of a path or URI, and the path within it.

    Raises:
        PipelineError: the scheme is unknown to pyarrow, or its settings are missing.
    """
    text = os.fspath(location)
    if not text:
        raise PipelineError("the path is empty")
    parts = urlsplit(text)
    if len(parts.scheme) <= 1 or parts.scheme in _LOCAL_SCHEMES:
        return LocalFiles(), str(Path(parts.path if parts.scheme == "file" else text).absolute())
    if parts.password is not None:
        raise PipelineError(
            f"the address of {parts.scheme}://...@{parts.hostname} contains a password, which outputs and"
            " messages would repeat: pass it in the environment or in the file system's configuration instead"
        )
    import pyarrow as pa
    from pyarrow import fs

    uri = text
    if parts.scheme in _ALIASES:
        uri = _ALIASES[parts.scheme] + text[len(parts.scheme) :]
    try:
        system, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise PipelineError(
            f"cannot use {text}: {reason}; use a local path or file:, hdfs:, s3a:, gs: or abfs:"
        ) from None
    return ArrowFiles(system), path


class LocalFiles:
    """Files on local disks. What it creates is private to its owner (``protocol/files``); a link has the mode
    of its source."""

    def list(self, folder: str) -> list[FileEntry]:
        try:
            with os.scandir(folder) as entries:
                return sorted(found for entry in entries if (found := _listed(entry)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entry(self, path: str) -> FileEntry | None:
        try:
            return _local_entry(path.rpartition("/")[2], os.stat(path))  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, path: str, offset: int, length: int) -> bytes:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            pieces = []
            while length > 0 and (piece := os.pread(descriptor, length, offset)):
                pieces.append(piece)
                offset += len(piece)
                length -= len(piece)
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        finally:
            os.close(descriptor)

    def data_range(self, path: str, offset: int) -> tuple[int, int] | None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            if offset >= size:
                return None
            # Allocated parts that were never written have no blocks on disk.
            begin = os.lseek(descriptor, offset, os.SEEK_DATA)
            return begin, os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            if error.errno == errno.EINVAL:
                return offset, size
            raise
        finally:
            os.close(descriptor)

    def read_all(self, path: str) -> bytes | None:
        try:
            with open_regular(Path(path)) as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str) -> BinaryIO:
        return Path(path).open("rb")

    def create(self, path: str) -> BinaryIO:
        make_private_folder(Path(path).parent)
        # Never write through a hard link to a file of an earlier output.
        Path(path).unlink(missing_ok=True)
        return open_private(Path(path), "wb")

    def fill(self, file: BinaryIO, count: int) -> None:
        file.truncate(file.tell() + count)
        file.seek(count, os.SEEK_CUR)

    def publish(self, path: str, data: bytes) -> None:
        target = Path(path)
        make_private_folder(target.parent)
        draft = target.with_name(f".{target.name}.tmp")
        with open_private(draft, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        _sync_folder(target.parent)

    def make_folder(self, path: str) -> None:
        make_private_folder(Path(path))

    def remove_tree(self, path: str) -> None:
        target = Path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def link(self, source: str, target: str) -> None:
        make_private_folder(Path(target).parent)
        Path(target).unlink(missing_ok=True)
        try:
            os.link(source, target)
        except OSError:
            with Path(source).open("rb") as original, open_private(Path(target), "xb") as copy:
                shutil.copyfileobj(original, copy, _COPY_BYTES)
            status = Path(source).stat()
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def move(self, source: str, target: str) -> None:
        Path(source).rename(target)
        _sync_folder(Path(target).parent)

    def point(self, link: str, target: str) -> None:
        """Make the symbolic link ``link`` name ``target``, atomically."""
        draft = Path(f"{link}.tmp")
        draft.unlink(missing_ok=True)
        draft.symlink_to(target)
        draft.replace(link)

    def sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))


def _local_entry(name: str, status: os.stat_result) -> FileEntry:
    is_file = stat.S_ISREG(status.st_mode)
    size = status.st_size if is_file else 0
    is_special = not is_file and not stat.S_ISDIR(status.st_mode)
    return FileEntry(name, is_file, size, status.st_mtime_ns // 1_000_000, is_special)


def _listed(entry: os.DirEntry[str]) -> FileEntry | None:
    """Return what an entry of a folder is; None for one that was deleted a moment ago, or is no store's."""
    try:
        found = _local_entry(entry.name, entry.stat())
    except FileNotFoundError:
        return FileEntry(entry.name, False, 0, 0, is_special=True) if entry.is_symlink() else None
    return None if found.name == LOST_AND_FOUND and not found.is_file else found


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ArrowFiles:
    """Files on HDFS and object stores, through ``pyarrow.fs``."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def list(self, folder: str) -> list[FileEntry]:
        from pyarrow import fs

        found = self._system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        for info in found:
            # The keys of an object store may contain ``..``.
            relative_path(info.base_name)
        return sorted(_arrow_entry(info) for info in found)

    def entry(self, path: str) -> FileEntry | None:
        from pyarrow import fs

        info = self._system.get_file_info(path)
        return None if info.type == fs.FileType.NotFound else _arrow_entry(info)

    def read(self, path: str, offset: int, length: int) -> bytes:
        with self._system.open_input_file(path) as file:
            return cast("bytes", file.read_at(max(0, min(length, file.size() - offset)), offset))

    def data_range(self, path: str, offset: int) -> tuple[int, int] | None:
        size = self._system.get_file_info(path).size
        return (offset, size) if offset < size else None

    def read_all(self, path: str) -> bytes | None:
        try:
            with self._system.open_input_stream(path) as file:
                return cast("bytes", file.read())
        except FileNotFoundError:
            return None

    def open(self, path: str) -> BinaryIO:
        return cast("BinaryIO", self._system.open_input_file(path))

    def create(self, path: str) -> BinaryIO:
        self._system.create_dir(path.rpartition("/")[0], recursive=True)
        return cast("BinaryIO", self._system.open_output_stream(path))

    def fill(self, file: BinaryIO, count: int) -> None:
        while count > 0:
            count -= file.write(_ZEROS[: min(count, len(_ZEROS))])

    def publish(self, path: str, data: bytes) -> None:
        # Object stores show an object only when it is complete; other file systems need a rename.
        if self._system.type_name in {"s3", "gcs", "abfs"}:
            with self.create(path) as file:
                file.write(data)
            return
        draft = f"{path}.tmp"
        with self.create(draft) as file:
            file.write(data)
        self._system.move(draft, path)

    def make_folder(self, path: str) -> None:
        self._system.create_dir(path, recursive=True)

    def remove_tree(self, path: str) -> None:
        entry = self.entry(path)
        if entry is None:
            return
        if entry.is_file:
            self._system.delete_file(path)
        else:
            self._system.delete_dir(path)

    def link(self, source: str, target: str) -> None:
        self._system.create_dir(target.rpartition("/")[0], recursive=True)
        self._system.copy_file(source, target)

    def move(self, source: str, target: str) -> None:
        self._system.move(source, target)

    def sync(self, path: str) -> None:
        """Do nothing: these file systems make a file durable when it is closed."""

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Do nothing: these file systems set the modification time themselves."""


def _arrow_entry(info: Any) -> FileEntry:
    mtime_ms = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
    return FileEntry(info.base_name, info.is_file, info.size if info.is_file else 0, mtime_ms)
