"""ResetHistory: the records of watched resets, in memory or as one JSON file each in a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from rewindmq.dashboard.resets.record import ResetRecord, Status, Summary
from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.files.private import FILE_MODE, make_private_folder, open_private
from rewindmq.protocol.remoting.runtime import Workers

# Records in memory, without a folder; the oldest leaves.
MAX_IN_MEMORY: Final = 50
# Records of a folder that are listed, the newest; older files stay where they are.
MAX_LISTED: Final = 1_000
MAX_FILE_BYTES: Final = 32 * 1024 * 1024
_LOCK: Final = "history.lock"
_FILE: Final = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}\.json")
INTERRUPTED: Final = (
    "the dashboard ended during the watch, so it is not known what became of the queues without a verdict"
)

S = TypeVar("S", bound=Summary)


class DamagedError(Exception):
    """A record's file cannot be read; the text names it and says why."""


@dataclass(frozen=True)
class Listed:
    """The newest records first, and a sentence for each file that cannot be read."""

    summaries: list[Summary]
    damaged: list[str]


class ResetHistory(Protocol):
    """Keeps the records of ended resets and of those that run."""

    @property
    def place(self) -> str:
        """Where the records are and how long they stay, in one sentence."""

    def listed(self) -> Listed:
        """Return what the list of resets shows."""

    async def save(self, record: ResetRecord) -> None:
        """Keep the record as it is now.

        Raises:
            OSError: it cannot be written; the record kept before is unchanged.
        """

    async def read(self, record_id: str) -> ResetRecord | None:
        """Return a record; None if there is none.

        Raises:
            DamagedError: the file is damaged.
        """


class MemoryHistory:
    """The records of one process; they are gone with it."""

    def __init__(self) -> None:
        self._records: dict[str, ResetRecord] = {}

    @property
    def place(self) -> str:
        return (
            f"The dashboard keeps the last {MAX_IN_MEMORY} resets in memory and forgets them when it stops:"
            " start it with --history DIR to keep them."
        )

    def listed(self) -> Listed:
        return Listed(sorted(self._records.values(), key=_age, reverse=True), [])

    async def save(self, record: ResetRecord) -> None:
        self._records[record.id] = record
        for old in [each for each in self._records.values() if each.is_over][:-MAX_IN_MEMORY]:
            del self._records[old.id]

    async def read(self, record_id: str) -> ResetRecord | None:
        return self._records.get(record_id)


class FolderHistory:
    """One JSON file for each record, written atomically; made by ``open_folder``."""

    def __init__(self, folder: Path, workers: Workers, listed: Listed) -> None:
        self._folder = folder
        self._workers = workers
        self._summaries = {summary.id: summary for summary in listed.summaries}
        self._damaged = listed.damaged
        # A cancelled save stops waiting for its thread, which goes on: the next one has to wait for it.
        self._turn = threading.Lock()
        self._numbers = count(1)
        # File name to the number of the last save that was written.
        self._written: dict[str, int] = {}

    @property
    def place(self) -> str:
        return f"Each reset leaves a file in {self._folder}; the newest {MAX_LISTED:,} are listed."

    def listed(self) -> Listed:
        return Listed(sorted(self._summaries.values(), key=_age, reverse=True), self._damaged)

    async def save(self, record: ResetRecord) -> None:
        content = msgspec.json.encode(record)
        number = next(self._numbers)
        await self._workers.run(self._write_in_turn, number, f"{record.id}.json", content)
        # A record that is watched changes, and the list shows it as it is then.
        self._summaries[record.id] = summary_of(record) if record.is_over else record
        if len(self._summaries) > MAX_LISTED:
            del self._summaries[min(self._summaries.values(), key=_age).id]

    def _write_in_turn(self, number: int, name: str, content: bytes) -> None:
        """Write a file, unless a later save has written it."""
        with self._turn:
            if number > self._written.get(name, 0):
                _write(self._folder, name, content)
                self._written[name] = number

    async def read(self, record_id: str) -> ResetRecord | None:
        # Only a name that was found in the folder becomes a path.
        found = self._summaries.get(record_id)
        if found is None or isinstance(found, ResetRecord):
            # A whole record is still watched, or its last write failed.
            return found
        try:
            path = self._folder / f"{record_id}.json"
            record: ResetRecord = await self._workers.run(_read, path, ResetRecord)
        except FileNotFoundError:
            return None
        return _ended(record)


@contextlib.asynccontextmanager
async def open_folder(folder: Path, workers: Workers) -> AsyncIterator[FolderHistory]:
    """Read the folder, which is made if there is none, and hold it until the block ends.

    Raises:
        ClientError: another dashboard holds the folder, or it cannot be made or read.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(_locked(folder))
            listed = await workers.run(_list, folder)
        except OSError as error:
            raise ClientError(
                f"cannot use the history in {folder} ({error.strerror}): name another folder with --history"
            ) from None
        yield FolderHistory(folder, workers, listed)


def summary_of(record: ResetRecord) -> Summary:
    """Return a copy of what the list shows."""
    return Summary(**{name: getattr(record, name) for name in Summary.__struct_fields__})


def _age(summary: Summary) -> tuple[int, str]:
    return summary.began_ms, summary.id


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    make_private_folder(folder)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClientError(
                f"another dashboard keeps its history in {folder}: stop it, or name another folder with"
                " --history"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _list(folder: Path) -> Listed:
    found = Listed([], [])
    names = sorted((path.name for path in folder.iterdir() if _FILE.fullmatch(path.name)), reverse=True)
    for name in names[:MAX_LISTED]:
        try:
            summary = _read(folder / name, Summary)
        except DamagedError as error:
            found.damaged.append(str(error))
        else:
            found.summaries.append(_ended(summary))
    return found


def _ended(summary: S) -> S:
    """Return the record of a file; one that was running then was interrupted."""
    if summary.status is Status.RUNNING:
        summary.status, summary.problem = Status.INTERRUPTED, INTERRUPTED
    return summary


def _read(path: Path, kind: type[S]) -> S:
    """Decode a file.

    Raises:
        DamagedError: it cannot be read, is too long, has another form, or is the record of another file.
        FileNotFoundError: it is gone.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(f"{path.name} cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise DamagedError(f"{path.name} is damaged: it has more than {MAX_FILE_BYTES:,} bytes")
    try:
        record = msgspec.json.decode(content, type=kind)
    except DECODE_FAILURES as error:
        raise DamagedError(f"{path.name} is damaged: {error}") from None
    if f"{record.id}.json" != path.name:
        raise DamagedError(f"{path.name} is damaged: it is the record of another file")
    return record


def _write(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, or leave it as it was."""
    fresh = folder / f"{name}.tmp"
    try:
        with open_private(fresh, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / name)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
