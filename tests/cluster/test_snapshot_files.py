"""Snapshots as one file, without processes: versions, damage, and paths that lead elsewhere."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewindmq import ClusterError
from rewindmq.cluster.snapshots.header import SnapshotHeader
from rewindmq.cluster.snapshots.snapshots import Snapshots

CLUSTER = SnapshotHeader(
    format=1,
    store_format=1,
    rewindmq="0.1.0",
    profile="v49",
    processes=["namesrv", "broker-a"],
    layout={},
    files=[],
)
HEADER: dict[str, Any] = {
    "format": 1,
    "storeFormat": 1,
    "rewindmq": "0.1.0",
    "profile": "v49",
    "processes": ["namesrv", "broker-a"],
    "layout": {},
    "files": [{"path": "broker-a/commitlog/0", "size": 100_000, "mtimeNs": 5, "isFull": True}],
}


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path / "snapshots")


Write = Callable[..., Path]


def test_a_snapshot_of_another_release_with_the_same_formats_is_loaded(
    snapshots: Snapshots, write: Write
) -> None:
    snapshots.load("given", write(HEADER | {"rewindmq": "9.9"}), CLUSTER)
    assert snapshots.header("given").rewindmq == "9.9"


def test_a_snapshot_without_a_store_format_is_of_the_first(snapshots: Snapshots, write: Write) -> None:
    """Snapshots of the first releases do not name one."""
    header = {key: value for key, value in HEADER.items() if key != "storeFormat"}
    snapshots.load("given", write(header), CLUSTER)
    assert snapshots.header("given").store_format == 1


@pytest.mark.parametrize("key", ["format", "storeFormat"])
def test_a_snapshot_in_the_folder_is_not_restored_by_another_format(
    snapshots: Snapshots, write: Write, tmp_path: Path, key: str
) -> None:
    """A folder of ``--dir`` outlives an upgrade."""
    snapshots.load("given", write(), CLUSTER)
    header = tmp_path / "snapshots/given/snapshot.json"
    header.write_text(json.dumps(HEADER | {key: 2, "rewindmq": "9.9"}))
    with pytest.raises(ClusterError, match=r"^snapshot 'given' was taken by RewindMQ 9\.9"):
        snapshots.put_back("given", tmp_path / "restored", CLUSTER)
    with pytest.raises(ClusterError, match=r"^snapshot 'given' was taken by RewindMQ 9\.9"):
        snapshots.save("given", tmp_path / "saved.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given.tar", "snapshots"]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(header, members)`` makes a file with a header, members ``{name: bytes}`` and checksums."""

    def make(header: dict[str, Any] | None = None, members: dict[str, bytes] | None = None) -> Path:
        given = {"files/broker-a/commitlog/0": b"log"} if members is None else members
        given = {"snapshot.json": json.dumps(header or HEADER).encode(), **given}
        sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in given.items())
        return write_tar(tmp_path / "given.tar", {**given, "snapshot.sha256": sums.encode()})

    return make


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def with_file(**changes: Any) -> dict[str, Any]:
    return HEADER | {"files": [HEADER["files"][0] | changes]}


def test_a_file_is_loaded_with_its_holes_and_saved_again(
    snapshots: Snapshots, write: Write, tmp_path: Path
) -> None:
    given = write()
    snapshots.load("one", given, CLUSTER)
    path = tmp_path / "snapshots/one/files/broker-a/commitlog/0"
    assert path.read_bytes() == b"log".ljust(100_000, b"\0")
    assert path.stat().st_blocks * 512 < 100_000
    assert path.stat().st_mtime_ns == 5
    saved = tmp_path / "saved.tar"
    snapshots.save("one", saved)
    assert saved.stat().st_size < 50_000
    snapshots.load("two", saved, CLUSTER)
    assert (tmp_path / "snapshots/two/files/broker-a/commitlog/0").read_bytes() == path.read_bytes()
    assert snapshots.header("two") == snapshots.header("one")
    assert snapshots.names() == ["one", "two"]


REFUSED = [
    (
        HEADER | {"format": 2, "rewindmq": "9.9"},
        None,
        r"was taken by RewindMQ 9\.9 with snapshot format 2, but .* reads snapshot format 1: use",
    ),
    (
        HEADER | {"storeFormat": 2, "rewindmq": "9.9"},
        None,
        r"was taken by RewindMQ 9\.9 with store format 2, but .* reads store format 1: use RewindMQ 9\.9",
    ),
    ({"format": 2}, None, "was taken by another version of RewindMQ with snapshot format 2"),
    (HEADER | {"profile": "v53"}, None, "of profile v53, but this cluster has profile v49"),
    (HEADER | {"processes": ["broker-a"]}, None, "of broker-a, but this cluster has namesrv, broker-a"),
    (HEADER | {"layout": {"maxIndexNum": "5"}}, None, "with maxIndexNum=5, but this cluster has 20000000"),
    ({"format": 1}, None, "is not a snapshot"),
    ({"version": 1}, None, "is not a snapshot"),
    (HEADER, {}, "is damaged: 'snapshot.sha256' is in the place of broker-a/commitlog/0"),
    (HEADER, {"files/broker-a/x": b""}, "is damaged: 'files/broker-a/x' is in the place of"),
    (with_file(size=2), None, "is damaged"),
    (with_file(size=-1), None, "is damaged"),
    (with_file(size=2**63 - 1), None, "cannot make broker-a/commitlog/0"),
    (with_file(mtimeNs=2**100), None, "is not a snapshot|has no valid time"),
    *(
        (with_file(path=path), {f"files/{path}": b"x"}, "is damaged: it has the file")
        for path in (
            "/etc/x",
            "../x",
            "broker-a/../../x",
            "broker-a",
            "broker-a/",
            "broker-a//x",
            "broker-a/./x",
            "other/x",
            "broker-a/x\0y",
            "broker-a/" + "x" * 256,
            "broker-a/" + "é" * 128,
            "broker-a" + "/x" * 600,
            "",
        )
    ),
    (with_file(size=2**63), None, "is damaged: it has the file"),
    (
        HEADER | {"files": [HEADER["files"][0] | {"path": f"broker-a/{path}"} for path in ("x", "x/y")]},
        None,
        "is damaged: it has the file 'broker-a/x'",
    ),
    (HEADER | {"files": HEADER["files"] * 2}, None, "is damaged: it has the file"),
    (
        HEADER | {"processes": ["..", "broker-a"], "files": [HEADER["files"][0] | {"path": "../x"}]},
        None,
        "damaged",
    ),
]


@pytest.mark.parametrize(("header", "members", "complaint"), REFUSED)
def test_a_file_that_does_not_fit_is_refused_and_leaves_nothing(
    snapshots: Snapshots,
    write: Write,
    tmp_path: Path,
    header: dict[str, Any],
    members: dict[str, bytes] | None,
    complaint: str,
) -> None:
    given = write(header, members)
    with pytest.raises(ClusterError, match=complaint):
        snapshots.load("given", given, CLUSTER)
    assert snapshots.names() == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["given.tar", "snapshots"]


def test_a_file_that_ends_anywhere_is_refused(snapshots: Snapshots, write: Write, tmp_path: Path) -> None:
    given = write(members={"files/broker-a/commitlog/0": b"x" * 3_000})
    data = given.read_bytes()
    whole = data.rstrip(b"\0")
    for length in range(0, len(whole), 97):
        given.write_bytes(data[:length])
        with pytest.raises(ClusterError, match=r"is not a snapshot|is truncated"):
            snapshots.load("given", given, CLUSTER)
    assert snapshots.names() == []


def test_a_file_with_any_byte_changed_is_refused(snapshots: Snapshots, write: Write, tmp_path: Path) -> None:
    """Headers, messages, checksums, padding and the zeros at the end."""
    header = HEADER | {
        "files": [HEADER["files"][0], HEADER["files"][0] | {"path": "broker-a/x", "isFull": False}]
    }
    given = write(header, {"files/broker-a/commitlog/0": b"body" * 300, "files/broker-a/x": b""})
    snapshots.load("given", given, CLUSTER)
    snapshots.save("given", given)
    data = given.read_bytes()
    end = len(data.rstrip(b"\0"))
    for at in (*range(0, end, 29), *range(end, len(data), 1_999), len(data) - 1):
        given.write_bytes(data[:at] + bytes([data[at] ^ 0xA5]) + data[at + 1 :])
        with pytest.raises(
            ClusterError, match=r"given\.tar.* (is not a snapshot|is damaged|is truncated|has no)"
        ):
            snapshots.load("changed", given, CLUSTER)
    assert snapshots.names() == ["given"]
    given.write_bytes(data)
    snapshots.load("changed", given, CLUSTER)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b"body", b"bodY", r"files/broker-a/commitlog/0 is not what was saved; save the snapshot again"),
        (b'"mtimeNs": 5', b'"mtimeNs": 6', r"snapshot\.json is not what was saved; save the snapshot again"),
        (b'"v49"', b'"v4\xff"', r"is not a snapshot, or is damaged: 'utf-8' codec"),
    ],
)
def test_the_error_names_what_was_changed(
    snapshots: Snapshots, write: Write, old: bytes, new: bytes, complaint: str
) -> None:
    given = write(None, {"files/broker-a/commitlog/0": b"body"})
    given.write_bytes(given.read_bytes().replace(old, new))
    with pytest.raises(ClusterError, match=complaint):
        snapshots.load("given", given, CLUSTER)
    assert snapshots.names() == []


def test_a_file_without_checksums_or_with_more_behind_them_is_refused(
    snapshots: Snapshots, tmp_path: Path
) -> None:
    members = {"snapshot.json": json.dumps(HEADER).encode(), "files/broker-a/commitlog/0": b"log"}
    given = write_tar(tmp_path / "given.tar", members)
    with pytest.raises(ClusterError, match=r"has no checksums: .*save the snapshot again"):
        snapshots.load("given", given, CLUSTER)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items())
    write_tar(given, {**members, "snapshot.sha256": sums.encode(), "more": b"x"})
    with pytest.raises(ClusterError, match=r"is damaged: it has 'more' behind the checksums"):
        snapshots.load("given", given, CLUSTER)


def test_other_programs_can_check_a_file(snapshots: Snapshots, write: Write, tmp_path: Path) -> None:
    snapshots.load("given", write(), CLUSTER)
    snapshots.save("given", tmp_path / "saved.tar")
    with tarfile.open(tmp_path / "saved.tar") as archive:
        archive.extractall(tmp_path / "out", filter="data")
    checked = subprocess.run(
        ["sha256sum", "--check", "snapshot.sha256"], cwd=tmp_path / "out", capture_output=True, check=True
    )
    assert checked.stdout == b"snapshot.json: OK\nfiles/broker-a/commitlog/0: OK\n"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            lambda folder: (folder / "snapshot.json").write_bytes(b'{"format": 1, "x": "\xff"}'),
            "is damaged: ",
        ),
        (
            lambda folder: (folder / "files/broker-a/commitlog/0").write_bytes(b"l"),
            "1 bytes, not 100000: take",
        ),
        (
            lambda folder: (folder / "files/broker-a/commitlog/0").unlink(),
            "is missing: take the snapshot again",
        ),
    ],
)
def test_a_damaged_snapshot_in_the_folder_is_not_restored(
    snapshots: Snapshots,
    write: Write,
    tmp_path: Path,
    change: Callable[[Path], object],
    complaint: str,
) -> None:
    snapshots.load("given", write(), CLUSTER)
    change(tmp_path / "snapshots/given")
    with pytest.raises(ClusterError, match=complaint):
        snapshots.put_back("given", tmp_path / "restored", CLUSTER)


def test_a_link_in_the_place_of_a_file_is_refused(snapshots: Snapshots, tmp_path: Path) -> None:
    path = tmp_path / "given.tar"
    with tarfile.open(path, "w") as archive:
        data = json.dumps(HEADER).encode()
        header = tarfile.TarInfo("snapshot.json")
        header.size = len(data)
        archive.addfile(header, io.BytesIO(data))
        link = tarfile.TarInfo("files/broker-a/commitlog/0")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(ClusterError, match="is damaged"):
        snapshots.load("given", path, CLUSTER)


@pytest.mark.parametrize("content", [b"", b"text", b"\0" * 10_240])
def test_a_file_of_another_kind_is_refused(snapshots: Snapshots, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    with pytest.raises(ClusterError, match="is not a snapshot"):
        snapshots.load("given", path, CLUSTER)


def test_a_missing_file_and_a_target_that_cannot_be_written_are_clear_errors(
    snapshots: Snapshots, write: Write, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError, match=r"^cannot read .*: No such file"):
        snapshots.load("given", tmp_path / "none", CLUSTER)
    snapshots.load("given", write(), CLUSTER)
    with pytest.raises(ClusterError, match=r"^cannot write .*: No such file"):
        snapshots.save("given", tmp_path / "none/x.tar")
    with pytest.raises(ClusterError, match="there is no snapshot 'other'; snapshots: given"):
        snapshots.save("other", tmp_path / "x.tar")


def test_a_failed_load_keeps_the_snapshot_of_the_same_name(snapshots: Snapshots, write: Write) -> None:
    snapshots.load("given", write(), CLUSTER)
    with pytest.raises(ClusterError):
        snapshots.load("given", write(members={}), CLUSTER)
    assert snapshots.header("given").files[0].path == "broker-a/commitlog/0"


def test_a_snapshot_that_cannot_take_its_place_leaves_the_old_one(
    snapshots: Snapshots, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots.load("given", write(), CLUSTER)
    rename = Path.rename

    def fail(source: Path, target: Path) -> Path:
        if source.name == ".given.new":
            raise OSError("no space")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="no space"):
        snapshots.load("given", write(), CLUSTER)
    assert snapshots.header("given").files[0].path == "broker-a/commitlog/0"


def test_a_snapshot_that_was_being_replaced_by_a_killed_process_is_kept(
    snapshots: Snapshots, write: Write, tmp_path: Path
) -> None:
    snapshots.load("given", write(), CLUSTER)
    folder = tmp_path / "snapshots"
    (folder / "given").rename(folder / ".given.old")
    with pytest.raises(ClusterError):
        snapshots.load("given", write(members={}), CLUSTER)
    assert snapshots.names() == ["given"]
    snapshots.delete("given")
    assert snapshots.names() == []
