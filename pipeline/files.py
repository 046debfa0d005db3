"""Files wherever Spark finds them: this machine's, or those of HDFS and object stores.

Workers read ranges of log segments, which Spark's own readers do not offer; so paths are resolved by
``pyarrow.fs``. Everything here pickles, since plans travel from the driver to workers.
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

_LOCAL_SCHEMES: Final = ("", "file")
_ZEROS: Final = bytes(1 << 20)
# Hadoop's names of schemes that pyarrow knows under another one.
_ALIASES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}


class FileEntry(NamedTuple):
    """What a folder holds.

    Attributes:
        size: bytes of a file, 0 for a folder.
        mtime_ms: last modification; 0 where the file system does not say.
    """

    name: str
    is_file: bool
    size: int
    mtime_ms: int


class ReadableFiles(Protocol):
    """One file system, to read from. Paths are absolute, with ``/``; every method raises OSError."""

    def list(self, folder: str) -> list[FileEntry]:
        """What a folder holds, by name; nothing when there is no such folder."""

    def entry(self, path: str) -> FileEntry | None:
        """One file or folder; None when there is none."""

    def read(self, path: str, offset: int, length: int) -> bytes:
        """At most ``length`` bytes from ``offset`` on; fewer only at the end of the file."""

    def data_range(self, path: str, offset: int) -> tuple[int, int] | None:
        """The next part of a file, from ``offset`` on, that may hold something other than zeros: where it
        begins and ends. None when only zeros follow."""

    def read_all(self, path: str) -> bytes | None:
        """A small file as a whole; None when there is none."""


class Files(ReadableFiles, Protocol):
    """One file system, to read from and to write to."""

    def open(self, path: str) -> BinaryIO:
        """A file to read, at any place of it."""

    def create(self, path: str) -> BinaryIO:
        """A new file to write from its start, replacing what is there; folders above it are made."""

    def fill(self, file: BinaryIO, count: int) -> None:
        """Add so many zero bytes to what was written; as a hole where the file system has such."""

    def publish(self, path: str, data: bytes) -> None:
        """Replace a small file in one step: readers see the old or the new one, also after a crash."""

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it."""

    def remove_tree(self, path: str) -> None:
        """Remove a folder or file; a missing one is no error."""

    def link(self, source: str, target: str) -> None:
        """Let ``target`` be a file of the same content, without copying where the file system can."""

    def move(self, source: str, target: str) -> None:
        """Rename a folder or file, in one step where the file system can."""

    def sync(self, path: str) -> None:
        """Make a written file durable, where the file system leaves that to its caller."""

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set the modification time, where the file system has one that can be set."""


def open_files(location: str | Path) -> tuple[Files, str]:
    """The file system of a path or URI, and the path within it.

    Raises:
        PipelineError: a scheme that neither this machine nor pyarrow knows, or that lacks its settings.
    """
    text = os.fspath(location)
    if not text:
        raise PipelineError("the path is empty")
    parts = urlsplit(text)
    if len(parts.scheme) <= 1 or parts.scheme in _LOCAL_SCHEMES:
        return LocalFiles(), str(Path(parts.path if parts.scheme == "file" else text).absolute())
    if parts.password is not None:
        raise PipelineError(
            f"the address of {parts.scheme}://...@{parts.hostname} holds a password, which outputs and"
            " messages would repeat: give it by the environment or a configuration file of the file system"
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
            f"cannot use {text}: {reason}; paths of this machine, file:, hdfs:, s3a:, gs: and abfs: are known"
        ) from None
    return ArrowFiles(system), path


class LocalFiles:
    """This machine's files."""

    def list(self, folder: str) -> list[FileEntry]:
        try:
            with os.scandir(folder) as entries:
                return sorted(_local_entry(entry.name, entry.stat()) for entry in entries)
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
            # What was allocated ahead and never written has no blocks on disk.
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
            return Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str) -> BinaryIO:
        return Path(path).open("rb")

    def create(self, path: str) -> BinaryIO:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        # A link made for an earlier output must not be written through.
        Path(path).unlink(missing_ok=True)
        return Path(path).open("wb")

    def fill(self, file: BinaryIO, count: int) -> None:
        file.truncate(file.tell() + count)
        file.seek(count, os.SEEK_CUR)

    def publish(self, path: str, data: bytes) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.tmp")
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        _sync_folder(target.parent)

    def make_folder(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        target = Path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def link(self, source: str, target: str) -> None:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).unlink(missing_ok=True)
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    def move(self, source: str, target: str) -> None:
        Path(source).rename(target)
        _sync_folder(Path(target).parent)

    def point(self, link: str, target: str) -> None:
        """Let a symbolic link name ``target``, in one step."""
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
    return FileEntry(name, is_file, status.st_size if is_file else 0, status.st_mtime_ns // 1_000_000)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ArrowFiles:
    """HDFS and object stores, by ``pyarrow.fs``."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def list(self, folder: str) -> list[FileEntry]:
        from pyarrow import fs

        found = self._system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
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
        # Object stores make an object visible as a whole; elsewhere a rename does it.
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
        """These file systems make a file durable when it is closed."""

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """These file systems keep their own time of the last write."""


def _arrow_entry(info: Any) -> FileEntry:
    mtime_ms = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
    return FileEntry(info.base_name, info.is_file, info.size if info.is_file else 0, mtime_ms)
