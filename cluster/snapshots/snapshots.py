"""Snapshots: the snapshots of one cluster, each a folder with a header and the files of all processes."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.names import NAMESRV
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.cluster.snapshots.archive import read_archive, write_archive
from rewindmq.cluster.snapshots.files import FileCopier, put_back
from rewindmq.cluster.snapshots.header import (
    HEADER_NAME,
    SnapshotFile,
    SnapshotHeader,
    check_fits,
    decode_header,
)
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.files.store_files import FILE_LIST, StoreFiles

FREEZE_SECONDS: Final = 10.0
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_FILES: Final = "files"
_TEMPORARY: Final = ".tmp"
# Files here are replaced at any time; a frozen broker has written its tables for the snapshot.
_CONFIG: Final = "config/"


class Snapshots:
    """Takes, keeps and puts back snapshots; blocking.

    Args:
        folder: where they are; on the same file system as the stores, or nothing can be linked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def delete(self, name: str) -> None:
        """Delete a snapshot, if there is one of the name."""
        shutil.rmtree(self._path(name), ignore_errors=True)

    def names(self) -> list[str]:
        """Return the names of all snapshots, sorted."""
        if not self._folder.exists():
            return []
        return sorted(entry.name for entry in self._folder.iterdir() if _NAME.fullmatch(entry.name))

    def take(self, name: str, processes: Mapping[str, ServerProcess], header: SnapshotHeader) -> None:
        """Copy the stores of all processes; a snapshot of the name is replaced.

        The brokers are frozen meanwhile. The name server's files are copied after that.

        Args:
            header: everything but the files.

        Raises:
            ClusterError: the name is invalid, or a process does not run or answer.
            OSError: the disk fails.
        """
        for process in processes.values():
            if not process.is_running:
                raise ClusterError(f"{process.name} is not running: restart it before a snapshot")
            if process.is_paused:
                raise ClusterError(f"{process.name} is paused: resume it before a snapshot")
        with self._making(name) as new:
            target = new / _FILES
            for each in processes:
                make_private_folder(target / each)
            brokers = [process for each, process in processes.items() if each != NAMESRV]
            files: list[SnapshotFile] = []
            with _frozen(brokers, target):
                for broker in brokers:
                    files += _copy_store(broker, target / broker.name)
            files += _copy_folder(processes[NAMESRV], target / NAMESRV)
            _write_header(new, msgspec.structs.replace(header, files=files))

    def put_back(self, name: str, target: Path, wanted: SnapshotHeader) -> None:
        """Fill a new folder with the files of a snapshot: ``<process>/<path>``.

        Raises:
            ClusterError: there is no such snapshot, it lacks a file, or it does not fit.
            OSError: the disk fails.
        """
        header = self.header(name)
        check_fits(header, wanted, name)
        copier = FileCopier(target)
        for each in header.processes:
            make_private_folder(target / each)
        for file in header.files:
            put_back(self._folder / name / _FILES, file, copier)

    def header(self, name: str) -> SnapshotHeader:
        """Return the header of a snapshot. Raise ClusterError if there is none."""
        path = self._path(name) / HEADER_NAME
        try:
            return decode_header(path.read_bytes(), f"snapshot {name!r}")
        except FileNotFoundError:
            known = ", ".join(self.names()) or "none"
            raise ClusterError(f"there is no snapshot {name!r}; snapshots: {known}") from None

    def save(self, name: str, path: Path) -> None:
        """Write a snapshot to one file.

        Raises:
            ClusterError: there is no such snapshot, or the file cannot be written.
        """
        header = self.header(name)
        try:
            write_archive(self._path(name) / _FILES, header, path)
        except OSError as error:
            raise ClusterError(f"cannot write {path}: {error.strerror or error}") from None

    def load(self, name: str, path: Path, wanted: SnapshotHeader) -> None:
        """Read a file of ``save`` as the snapshot ``name``.

        Raises:
            ClusterError: the file is no snapshot, of another version, truncated or damaged, or does not fit.
            OSError: the disk fails.
        """
        with self._making(name) as new:
            header = read_archive(path, new / _FILES)
            check_fits(header, wanted, name)
            _write_header(new, header)

    def _path(self, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            raise ClusterError(
                f"a snapshot's name has 1 to 64 letters, digits, '.', '_' and '-', and begins with a letter"
                f" or digit: {name[:200]!r}"
            )
        return self._folder / name

    @contextlib.contextmanager
    def _making(self, name: str) -> Iterator[Path]:
        """Give a new folder, which becomes the snapshot ``name`` if the block succeeds."""
        path = self._path(name)
        new, old = (self._folder / f".{name}.{what}" for what in ("new", "old"))
        _recover(path, old)
        shutil.rmtree(new, ignore_errors=True)
        make_private_folder(new)
        try:
            yield new
            if path.exists():
                path.rename(old)
            new.rename(path)
        finally:
            _recover(path, old)
            shutil.rmtree(new, ignore_errors=True)


def _recover(path: Path, old: Path) -> None:
    """Put a snapshot back that was moved away for a new one which did not come, else delete it."""
    if old.exists() and not path.exists():
        old.rename(path)
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _frozen(brokers: list[ServerProcess], target: Path) -> Iterator[None]:
    """Freeze all brokers, so that their stores belong to one moment."""
    try:
        for broker in brokers:
            broker.begin_freeze(target / broker.name)
        for broker in brokers:
            broker.wait_obeyed(FREEZE_SECONDS)
        yield
    finally:
        for broker in brokers:
            broker.thaw()


def _copy_store(broker: ServerProcess, target: Path) -> list[SnapshotFile]:
    """Copy the store of a frozen broker, which has written its state to the target."""
    list_path = target / FILE_LIST
    listed = msgspec.json.decode(list_path.read_bytes(), type=StoreFiles)
    list_path.unlink()
    copier = FileCopier(target)
    files = [_described(path, target, is_full=False) for path in sorted(target.rglob("*")) if path.is_file()]
    written = {file.path for file in files}
    for relative in listed.full:
        path = copier.add(broker.store_path / relative, relative, is_full=True)
        files.append(_described(path, target, is_full=True))
    for relative in listed.growing:
        if f"{broker.name}/{relative}" in written:
            continue
        try:
            path = copier.add(broker.store_path / relative, relative, is_full=False)
        except FileNotFoundError:
            if not relative.startswith(_CONFIG):
                raise
            continue
        files.append(_described(path, target, is_full=False))
    return files


def _copy_folder(process: ServerProcess, target: Path) -> list[SnapshotFile]:
    """Copy the small files of a process that replaces them as a whole."""
    copier = FileCopier(target)
    files = []
    for path in sorted(process.store_path.rglob("*")):
        if path.is_file() and not path.name.endswith(_TEMPORARY):
            relative = path.relative_to(process.store_path).as_posix()
            files.append(_described(copier.add(path, relative, is_full=False), target, is_full=False))
    return files


def _described(path: Path, target: Path, *, is_full: bool) -> SnapshotFile:
    status = path.stat()
    relative = path.relative_to(target.parent).as_posix()
    return SnapshotFile(relative, status.st_size, status.st_mtime_ns, is_full)


def _write_header(folder: Path, header: SnapshotHeader) -> None:
    with open_private(folder / HEADER_NAME, "wb") as file:
        file.write(msgspec.json.encode(header))
