"""The header of a snapshot: what it is a snapshot of, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

import msgspec

import rewindmq
from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.command import DECODE_FAILURES

# Version of the header and of the archive.
FORMAT: Final = 1
# Version of the files in a store that are RewindMQ's own, such as the epochs of fenced resets. Raise it when
# a release cannot read, or would misread, what an earlier one wrote.
STORE_FORMAT: Final = 1
HEADER_NAME: Final = "snapshot.json"
# Keys of broker.conf that the files of a store must fit, with RocketMQ's defaults.
LAYOUT_KEYS: Final[Mapping[str, int]] = {
    "mappedFileSizeCommitLog": 1_073_741_824,
    "mappedFileSizeConsumeQueue": 6_000_000,
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
}
_PATH_PARTS: Final = 2


class SnapshotFile(msgspec.Struct, frozen=True, rename="camel"):
    """One file.

    Attributes:
        path: ``<process>/<path in its store>``.
        size: bytes, with holes.
        mtime_ns: modification time; retention and searches by time use it.
        is_full: True if no process ever writes it again.
    """

    path: str
    size: int
    mtime_ns: int
    is_full: bool


class SnapshotHeader(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The header.

    Attributes:
        format: ``FORMAT`` of the RewindMQ that took the snapshot.
        store_format: its ``STORE_FORMAT``; the first releases did not write it.
        rewindmq: its version. Only the formats decide whether another version can use the snapshot.
        profile: release that the cluster imitated.
        processes: names of the cluster's processes.
        layout: the values of ``LAYOUT_KEYS`` that are not defaults.
    """

    format: int
    store_format: int = 1
    rewindmq: str
    profile: str
    processes: list[str]
    layout: dict[str, str]
    files: list[SnapshotFile]


class _Versions(msgspec.Struct, frozen=True, rename="camel"):
    """The part of the header that every format has."""

    format: int
    store_format: int = 1
    rewindmq: str = ""


# The first size that no file can have; the longest name of a file; and a path longer than any of a store.
_TOO_LARGE: Final = 1 << 63
_MAX_NAME_BYTES: Final = 255
_MAX_PATH: Final = 1_024


def decode_header(data: bytes, where: str) -> SnapshotHeader:
    """Return a header whose paths lead nowhere outside the snapshot.

    Raises:
        ClusterError: it is of another format, or damaged.
    """
    try:
        _check_versions(msgspec.json.decode(data, type=_Versions), where)
        header = msgspec.json.decode(data, type=SnapshotHeader)
    except DECODE_FAILURES as error:
        raise ClusterError(f"{where} is not a snapshot, or is damaged: {error}") from None
    files = {file.path for file in header.files}
    folders = {str(folder) for path in files for folder in PurePosixPath(path).parents}
    seen: set[str] = set()
    for file in header.files:
        is_good = _is_inside(file.path, header.processes) and file.path not in seen | folders
        if not is_good or not 0 <= file.size < _TOO_LARGE:
            raise ClusterError(f"{where} is damaged: it has the file {file.path[:200]!r}")
        seen.add(file.path)
    return header


def _check_versions(versions: _Versions, where: str) -> None:
    """Check that this release can read a snapshot.

    Raises:
        ClusterError: it cannot; the text says which release took the snapshot, and what to do.
    """
    if versions.format != FORMAT:
        what, theirs, known = "snapshot", versions.format, FORMAT
    elif versions.store_format != STORE_FORMAT:
        what, theirs, known = "store", versions.store_format, STORE_FORMAT
    else:
        return
    release = f"RewindMQ {versions.rewindmq}" if versions.rewindmq else "another version of RewindMQ"
    raise ClusterError(
        f"{where} was taken by {release} with {what} format {theirs}, but RewindMQ {rewindmq.__version__}"
        f" reads {what} format {known}: use {release}, or take the snapshot again"
    )


def _is_inside(path: str, processes: list[str]) -> bool:
    parts = PurePosixPath(path).parts
    return (
        len(parts) >= _PATH_PARTS
        and parts[0] in processes
        and parts[0] not in ("/", "..")
        and ".." not in parts
        and "\0" not in path
        and len(path) <= _MAX_PATH
        and all(len(part.encode("utf-8", "surrogatepass")) <= _MAX_NAME_BYTES for part in parts)
        and "/".join(parts) == path
    )


def check_fits(header: SnapshotHeader, wanted: SnapshotHeader, name: str) -> None:
    """Check that a cluster can use a snapshot.

    Args:
        wanted: the header of a snapshot of the cluster.

    Raises:
        ClusterError: profile, processes or file sizes differ.
    """
    layouts = [
        {**{key: str(value) for key, value in LAYOUT_KEYS.items()}, **each.layout}
        for each in (header, wanted)
    ]
    differing = [key for key in LAYOUT_KEYS if layouts[0][key] != layouts[1][key]]
    if header.processes != wanted.processes:
        what = f"of {', '.join(header.processes)}, but this cluster has {', '.join(wanted.processes)}"
    elif header.profile != wanted.profile:
        what = f"of profile {header.profile}, but this cluster has profile {wanted.profile}"
    elif differing:
        key = differing[0]
        what = f"with {key}={layouts[0][key]}, but this cluster has {layouts[1][key]}"
    else:
        return
    raise ClusterError(f"snapshot {name!r} is {what}: start the cluster with the snapshot's options")
