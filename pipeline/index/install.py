"""Copies consume queues, key index and time index into the store whose log they were built from.

A crash during installation leaves a store that a broker can open: the broker rebuilds missing files, and
another installation repairs the rest.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.lock import StoreLock
from rewindmq.broker.store.layout.paths import StoreLayout
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import Files, LocalFiles, open_files
from rewindmq.pipeline.index.checkpoint_file import set_times
from rewindmq.pipeline.index.job import JOB, QUEUE_FILE_BYTES
from rewindmq.pipeline.index_files.format import read_header
from rewindmq.pipeline.output.identity import RecordIdentity, check_same_log
from rewindmq.pipeline.output.output import Manifest, read_manifest
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot, take_snapshot
from rewindmq.protocol.files.private import FOLDER_MODE, make_private_folder, open_private

# Folders below the store's root that a broker ignores.
_NEW: Final = "install-index.new"
_OLD: Final = "install-index.old"
_COPY_BYTES: Final = 1 << 20
_ZEROS: Final = bytes(_COPY_BYTES)


class InstallSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of an installation.

    Attributes:
        log_end: log position up to which the files are complete; a broker builds the rest when it starts.
        log_behind: bytes of log after ``log_end``.
        files, bytes_copied: files and bytes in total; holes in files are not counted.
    """

    store: str
    output: str
    generation: int
    log_end: int
    log_behind: int
    files: int
    bytes_copied: int

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, named in camelCase."""
        table: dict[str, Any] = msgspec.to_builtins(self)
        return table


def install_index(out: str | Path, store: str | Path) -> InstallSummary:
    """Replace a store's own files by those of an index. The broker must be stopped.

    Args:
        out: path or URI of an output that ``build_index`` made from this store, or from a copy of it.
        store: the store's directory on this machine.

    Raises:
        PipelineError: the output is unpublished, or was made from another log or for other settings; a broker
            runs; or the store is not on this machine.
    """
    if not isinstance(open_files(store)[0], LocalFiles):
        raise PipelineError(f"{store} is not on this machine: install the index where the broker runs")
    files, root = open_files(out)
    manifest = read_manifest(files, root)
    if manifest is None or manifest.job != JOB:
        raise PipelineError(f"{root} is not an index; make one with: rewindmq pipeline index STORE {root}")
    # Check before the lock: taking the lock would create a store in any directory.
    snapshot = take_snapshot(store)
    try:
        with _locked(Path(snapshot.root)):
            return _Installation(files, root, manifest, snapshot).run()
    except OSError as error:
        place = error.filename or snapshot.root
        raise PipelineError(f"cannot use {place}: {error.strerror or error}") from None


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    lock = StoreLock(StoreLayout(root).lock)
    try:
        lock.acquire()
    except StoreError as error:
        raise PipelineError(f"{error}: stop it first") from None
    try:
        yield
    finally:
        lock.release()


class _Installation:
    """One installation, while the store is locked."""

    def __init__(self, files: Files, root: str, manifest: Manifest, snapshot: StoreSnapshot) -> None:
        self._files = files
        self._root = root
        self._manifest = manifest
        self._snapshot = snapshot
        self._store = Path(snapshot.root)
        layout = StoreLayout(self._store)
        # In the order in which they are installed.
        self._parts = (layout.consume_queue, layout.index, layout.time_index)
        self._checkpoint = layout.checkpoint
        self._file_count = 0
        self._bytes_copied = 0

    def run(self) -> InstallSummary:
        last = self._check()
        self._settle()
        new, source = self._store / _NEW, f"{self._root}/{self._manifest.folder}"
        for part in self._parts:
            self._copy(f"{source}/{part.name}", new / part.name)
        index_time = self._newest_index_time(f"{source}/{self._parts[1].name}")
        # Until all files are installed, a broker that starts after a crash must read the log from its start.
        set_times(self._checkpoint, logics=0)
        self._put_in_place(new)
        set_times(self._checkpoint, logics=last.store_timestamp, index=index_time)
        for folder in (new, self._store / _OLD):
            shutil.rmtree(folder, ignore_errors=True)
        return InstallSummary(
            store=self._snapshot.root,
            output=self._root,
            generation=self._manifest.generation,
            log_end=last.end,
            log_behind=max(0, self._snapshot.end - int(self._manifest.source[0]["end"])),
            files=self._file_count,
            bytes_copied=self._bytes_copied,
        )

    def _check(self) -> RecordIdentity:
        last = RecordIdentity.from_json(self._manifest.facts["last"])
        if last is None:
            raise PipelineError(f"{self._root} covers no message; index the store again")
        check_same_log(self._snapshot, last, self._root, "index this store")
        size = self._manifest.options[QUEUE_FILE_BYTES]
        for queue in self._snapshot.queues():
            for file in queue.files:
                if file.size not in (0, size):
                    raise PipelineError(
                        f"{file.path} has {file.size} bytes, consume queue files of {self._root} have {size}:"
                        " index the store for that size"
                    )
        return last

    def _settle(self) -> None:
        """Undo an unfinished installation."""
        old = self._store / _OLD
        for part in self._parts:
            if not part.exists() and (old / part.name).exists():
                (old / part.name).rename(part)
        for folder in (old, self._store / _NEW):
            if folder.exists():
                shutil.rmtree(folder)

    def _put_in_place(self, new: Path) -> None:
        old = self._store / _OLD
        old.mkdir(FOLDER_MODE)
        *_, time_index = self._parts
        # The time index refers to queues, so the old one is removed before the old queues.
        if time_index.exists():
            time_index.rename(old / time_index.name)
        for part in self._parts:
            if part.exists():
                part.rename(old / part.name)
            if (new / part.name).exists():
                (new / part.name).rename(part)
            _sync(self._store)

    def _copy(self, source: str, target: Path) -> None:
        """Copy a folder tree. Links would let a broker write into the output's files."""
        for entry in self._files.list(source):
            if entry.is_file:
                make_private_folder(target)
                self._copy_file(f"{source}/{entry.name}", target / entry.name, entry.size)
                os.utime(target / entry.name, ns=(entry.mtime_ms * 1_000_000,) * 2)
            else:
                self._copy(f"{source}/{entry.name}", target / entry.name)
        if target.exists():
            _sync(target)

    def _copy_file(self, source: str, target: Path, size: int) -> None:
        self._file_count += 1
        with open_private(target, "xb") as file:
            for position in range(0, size, _COPY_BYTES):
                data = self._files.read(source, position, min(_COPY_BYTES, size - position))
                if data != _ZEROS[: len(data)]:
                    file.seek(position)
                    file.write(data)
                    self._bytes_copied += len(data)
            file.truncate(size)
            file.flush()
            os.fsync(file.fileno())

    def _newest_index_time(self, folder: str) -> int:
        """Return the newest index time: after a crash a broker drops index files beyond the checkpoint."""
        paths = [f"{folder}/{entry.name}" for entry in self._files.list(folder)]
        return max((read_header(self._files, path).end_timestamp for path in paths), default=0)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
