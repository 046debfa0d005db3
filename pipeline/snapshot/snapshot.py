"""Snapshot of a store: a prefix of its log that does not change while the broker runs on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from rewindmq.broker.store.layout.queue_path import names_a_queue, queue_path
from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.segment_reader import Segment
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import FileEntry, ReadableFiles, check_kind, open_files
from rewindmq.pipeline.snapshot.log_end import cut_behind_last_record
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.errors import RewindMQError

_SEGMENT_NAME: Final = re.compile(r"\d{20}")
_INDEX_NAME: Final = re.compile(r"\d{17}")
_ROCKSDB_FILE: Final = re.compile(r"CURRENT|IDENTITY|MANIFEST-.*|OPTIONS-.*|.*\.sst")
# Files that a broker makes before its first message.
_OF_A_STORE: Final = frozenset({"abort", "checkpoint", "consumequeue"})
_ROCKSDB_CONFIG: Final = ("topics", "subscriptionGroups", "consumerOffsets", "rdb")
CQ_ENTRY_BYTES: Final = 20
# The size field of filler entries before a queue's first message (docs/spec/store.md 4.4).
PRE_BLANK_SIZE: Final = 2_147_483_647


class PositionedFile(NamedTuple):
    """A file that is named by its position, such as a file of a consume queue.

    Attributes:
        base: position that its name states.
        size: bytes.
        mtime_ms: last modification; 4.x uses it to search by time.
    """

    path: str
    base: int
    size: int
    mtime_ms: int


class QueueFiles(NamedTuple):
    """The consume queue of one (topic, queueId): 20-byte entries in consecutive files."""

    topic: str
    queue_id: int
    files: tuple[PositionedFile, ...]


class StoreSnapshot(NamedTuple):
    """A store directory as it was when the job began; it can be pickled.

    Attributes:
        location: the path or URI as given, without a trailing slash.
        root: path of the store within ``files``.
        segments: segments with data, by position; ``end`` of the last is the log's end.
        segment_bytes: size of a commit log segment, 0 for an empty store.
        torn: damage after the last record; None if the rest is empty.
        label: name of the store among several; empty for the last part of its path.
    """

    location: str
    files: ReadableFiles
    root: str
    segments: tuple[Segment, ...]
    segment_bytes: int
    torn: Damage | None
    label: str = ""

    @property
    def begin(self) -> int:
        """Log position of the first retained byte."""
        return self.segments[0].base if self.segments else 0

    @property
    def end(self) -> int:
        """Log position after the last record."""
        return self.segments[-1].end if self.segments else 0

    @property
    def name(self) -> str:
        """Name of the store in tables and outputs."""
        return self.label or self.root.rpartition("/")[2]

    def segment_of(self, position: int) -> Segment | None:
        """Return the segment that holds a log position; None if it is deleted or does not exist yet."""
        for segment in self.segments:
            if segment.base <= position < segment.end:
                return segment
        return None

    def cut(self, end: int) -> StoreSnapshot:
        """Return a snapshot of the same log up to an earlier end."""
        kept = (segment for segment in self.segments if segment.base < end)
        return self._replace(segments=tuple(segment._replace(end=min(segment.end, end)) for segment in kept))

    def queues(self) -> Iterator[QueueFiles]:
        """Yield every consume queue, by topic and queue id."""
        folder = f"{self.root}/consumequeue"
        for topic in self.files.list(folder):
            check_kind(topic, folder)
            if topic.is_file:
                continue
            for queue in sorted(self.files.list(f"{folder}/{topic.name}"), key=_numeric):
                if not queue.is_file and queue.name.isdecimal():
                    check_kind(queue, f"{folder}/{topic.name}")
                    yield self.queue(topic.name, int(queue.name))

    def queue(self, topic: str, queue_id: int) -> QueueFiles:
        """Return one consume queue; it has no files if the queue does not exist, or cannot."""
        if not names_a_queue(topic, queue_id):
            return QueueFiles(topic, queue_id, ())
        folder = f"{self.root}/consumequeue/{queue_path(topic, queue_id)}"
        return QueueFiles(topic, queue_id, tuple(positioned_files(self.files, folder)))

    def index_files(self) -> list[FileEntry]:
        """Return the key index's files, oldest first."""
        folder = f"{self.root}/index"
        entries = [entry for entry in self.files.list(folder) if _INDEX_NAME.fullmatch(entry.name)]
        for entry in entries:
            check_kind(entry, folder, needs_file=True)
        return entries

    def config(self, name: str) -> Mapping[str, Any]:
        """Return one of ``config/*.json``, or its ``.bak``; empty if neither exists (docs/spec/store.md 8.1).

        Raises:
            PipelineError: neither file that exists can be read.
        """
        path = f"{self.root}/config/{name}"
        broken = ""
        for candidate in (path, f"{path}.bak"):
            data = self.files.read_all(candidate)
            if not data:
                continue
            try:
                value = fastjson.loads(data)
            except (RewindMQError, ValueError) as error:
                broken = f"cannot read {candidate}: {error}"
                continue
            if isinstance(value, dict):
                return value
            broken = f"cannot read {candidate}: it is not a JSON object"
        if broken:
            raise PipelineError(broken)
        return {}


def _numeric(entry: FileEntry) -> tuple[int, str]:
    return (int(entry.name) if entry.name.isdecimal() else -1, entry.name)


def positioned_files(files: ReadableFiles, folder: str) -> list[PositionedFile]:
    """Return the files of a folder whose names are positions, in order.

    A broker creates a file before it gives the file its size. So an empty last file is left out: the broker
    is about to use it, or was killed before it could. A broker that starts removes it (RocketMQ 5.x).

    Raises:
        PipelineError: an entry with such a name is a folder, a pipe, a device, or a link to nothing.
    """
    found = []
    for entry in files.list(folder):
        if _SEGMENT_NAME.fullmatch(entry.name):
            check_kind(entry, folder, needs_file=True)
            path = f"{folder}/{entry.name}"
            found.append(PositionedFile(path, int(entry.name), entry.size, entry.mtime_ms))
    return found[:-1] if found and found[-1].size == 0 else found


def labelled(snapshots: Sequence[StoreSnapshot]) -> list[StoreSnapshot]:
    """Return the stores with labels that tell them apart.

    A label is as many of a path's last parts as needed, without the last parts that all paths share: for
    ``a/broker-a/store`` and ``a/broker-b/store`` the labels are ``broker-a`` and ``broker-b``.

    Raises:
        PipelineError: a store is given twice.
    """
    parts = [snapshot.root.strip("/").split("/") for snapshot in snapshots]
    if len({tuple(part) for part in parts}) < len(parts):
        raise PipelineError("a store is given twice")
    while len(parts) > 1 and all(len(part) > 1 for part in parts) and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    count = 1
    while len({tuple(part[-count:]) for part in parts}) < len(parts):
        count += 1
    return [
        snapshot._replace(label="/".join(part[-count:]))
        for snapshot, part in zip(snapshots, parts, strict=True)
    ]


def take_snapshot(location: str | Path, files: ReadableFiles | None = None) -> StoreSnapshot:
    """Take a snapshot of a store; change nothing in the store.

    Args:
        files: file system of the location; None to open it here.

    Raises:
        PipelineError: the location is missing, not readable, not a store, or an unsupported kind of store.
    """
    opened, root = open_files(location)
    files = files or opened
    try:
        _check(files, root)
        found = positioned_files(files, f"{root}/commitlog")
        size = _segment_bytes(root, found)
        whole = [Segment(file.path, file.base, file.size, file.base + file.size) for file in found]
        segments, torn = cut_behind_last_record(files, whole)
    except OSError as error:
        raise PipelineError(f"cannot read {error.filename or root}: {error.strerror or error}") from None
    return StoreSnapshot(str(location).rstrip("/") or "/", files, root, tuple(segments), size, torn)


def check_store(location: str | Path) -> None:
    """Check that there is a store; do not read its log.

    Raises:
        PipelineError: the location is missing, not readable, not a store, or an unsupported kind of store.
    """
    files, root = open_files(location)
    try:
        _check(files, root)
    except OSError as error:
        raise PipelineError(f"cannot read {error.filename or root}: {error.strerror or error}") from None


def _check(files: ReadableFiles, root: str) -> None:
    entry = files.entry(root)
    if entry is None:
        raise PipelineError(f"there is no store at {root}: the directory does not exist")
    if entry.is_file:
        raise PipelineError(
            f"{root} is a file; a store is a directory (storePathRootDir) that contains commitlog/"
        )
    names = [item.name for item in files.list(root)]
    for name in names:
        if name.startswith("dledger-"):
            raise PipelineError(f"{root}/{name} is a DLedger (Raft) commit log, which is not supported")
    for item in files.list(f"{root}/consumequeue"):
        if item.is_file and _ROCKSDB_FILE.fullmatch(item.name):
            raise PipelineError(f"{root}/consumequeue is a RocksDB consume queue, which is not supported")
    for name in _ROCKSDB_CONFIG:
        folder = files.entry(f"{root}/config/{name}")
        if folder is not None and not folder.is_file:
            raise PipelineError(f"{root}/config/{name} is RocksDB configuration, which is not supported")
    if "commitlog" not in names and not _OF_A_STORE & set(names):
        hint = ""
        if any(_SEGMENT_NAME.fullmatch(name) for name in names):
            hint = "; this looks like the commit log itself: give the directory above it"
        raise PipelineError(f"{root} is not a store: it contains no commitlog/{hint}")


def _segment_bytes(root: str, found: list[PositionedFile]) -> int:
    if not found:
        return 0
    sizes = {file.size for file in found}
    if len(sizes) > 1:
        odd = next(file for file in found if file.size != found[0].size)
        raise PipelineError(
            f"{odd.path} has {odd.size} bytes and {found[0].path} has {found[0].size}:"
            " all segments of a commit log must have one size"
        )
    size = sizes.pop()
    if size == 0:
        raise PipelineError(f"{found[0].path} is empty")
    for before, after in pairwise(found):
        if after.base - before.base != size:
            raise PipelineError(
                f"{root}/commitlog lacks a segment between {before.base:020d} and {after.base:020d}"
                f" (segments of {size} bytes)"
            )
    return size
