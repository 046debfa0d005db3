"""The file interface: the same for local disks and for pyarrow's file systems."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from rewindmq.pipeline.counters import Counters, CountingFiles, read_counters, write_counters
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import ArrowFiles, Files, LocalFiles, open_files
from rewindmq.pipeline.snapshot.snapshot import take_snapshot
from rewindmq.protocol.names import PathNameError
from tests.pipeline.records import plain, write_log

KINDS: list[Files] = [LocalFiles(), ArrowFiles(fs.LocalFileSystem())]


@pytest.fixture(params=KINDS, ids=["this machine", "pyarrow"])
def files(request: pytest.FixtureRequest) -> Files:
    kind: Files = pickle.loads(pickle.dumps(request.param))
    return kind


def test_what_is_written_is_read(files: Files, tmp_path: Path) -> None:
    path = f"{tmp_path}/folder/file"
    with files.create(path) as file:
        file.write(b"0123456789")
    files.sync(path)
    assert files.read(path, 3, 4) == b"3456"
    assert files.read(path, 8, 100) == b"89"
    assert files.read(path, 100, 4) == b""
    assert files.read_all(path) == b"0123456789"
    entry = files.entry(path)
    assert entry is not None
    assert (entry.name, entry.is_file, entry.size) == ("file", True, 10)
    assert [item.name for item in files.list(f"{tmp_path}/folder")] == ["file"]


def test_a_file_is_filled_up_with_zeros(files: Files, tmp_path: Path) -> None:
    path = f"{tmp_path}/file"
    with files.create(path) as file:
        file.write(b"12")
        files.fill(file, 3_000_000)
        file.write(b"34")
        files.fill(file, 0)
    assert files.read_all(path) == b"12" + bytes(3_000_000) + b"34"


def test_what_is_not_there_is_nothing(files: Files, tmp_path: Path) -> None:
    assert files.list(f"{tmp_path}/none") == []
    assert files.entry(f"{tmp_path}/none") is None
    assert files.read_all(f"{tmp_path}/none") is None
    files.remove_tree(f"{tmp_path}/none")
    with pytest.raises(FileNotFoundError):
        files.read(f"{tmp_path}/none", 0, 1)


def test_publishing_replaces_and_moving_renames(files: Files, tmp_path: Path) -> None:
    files.make_folder(f"{tmp_path}/a")
    files.publish(f"{tmp_path}/a/file", b"one")
    files.publish(f"{tmp_path}/a/file", b"two")
    files.link(f"{tmp_path}/a/file", f"{tmp_path}/b/copy")
    assert files.read_all(f"{tmp_path}/b/copy") == b"two"
    files.move(f"{tmp_path}/a", f"{tmp_path}/c")
    assert [item.name for item in files.list(str(tmp_path))] == ["b", "c"]
    assert [item.name for item in files.list(f"{tmp_path}/c")] == ["file"]
    files.remove_tree(f"{tmp_path}/c")
    assert files.entry(f"{tmp_path}/c") is None


def test_a_linked_file_is_not_written_through(tmp_path: Path) -> None:
    files = LocalFiles()
    files.publish(f"{tmp_path}/old", b"old")
    files.link(f"{tmp_path}/old", f"{tmp_path}/new")
    with files.create(f"{tmp_path}/new") as file:
        file.write(b"new")
    assert files.read_all(f"{tmp_path}/old") == b"old"


def test_what_is_made_on_this_machine_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the umask, and also where a link is not possible and the file is copied."""
    files, root = LocalFiles(), tmp_path / "out"
    before = os.umask(0)
    try:
        files.publish(f"{root}/a/published", b"1")
        with files.create(f"{root}/b/created") as file:
            file.write(b"2")
        files.make_folder(f"{root}/c/folder")
        wide = tmp_path / "wide"
        wide.write_bytes(b"3")
        os.utime(wide, ns=(1_000_000, 2_000_000))

        def fail(*_: object) -> None:
            raise OSError

        monkeypatch.setattr(os, "link", fail)
        files.link(str(wide), f"{root}/d/copied")
    finally:
        os.umask(before)
    assert (root / "d/copied").read_bytes() == b"3"
    assert (root / "d/copied").stat().st_mtime_ns == 2_000_000
    modes = {stat.filemode(path.stat().st_mode) for path in (root, *root.rglob("*"))}
    assert modes == {"drwx------", "-rw-------"}


def test_parts_never_written_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 19)
        file.write(b"data")
    for files in KINDS:
        position, found = 0, b""
        while (held := files.data_range(str(path), position)) is not None:
            start, position = held
            assert start < position
            found += files.read(str(path), start, position - start)
        assert found.strip(b"\0") == b"data"
        assert files.data_range(str(path), 1 << 20) is None
    start, end = LocalFiles().data_range(str(path), 0) or (0, 0)
    assert start <= 1 << 19 < end
    if hasattr(os, "SEEK_DATA") and path.stat().st_blocks * 512 < 1 << 19:
        assert start > 0


def test_a_store_is_read_through_pyarrow_as_through_this_machine(tmp_path: Path) -> None:
    write_log(tmp_path / "store", [plain(bytes([number])) for number in range(9)], 1_024)
    here = take_snapshot(tmp_path / "store")
    there = take_snapshot(tmp_path / "store", ArrowFiles(fs.LocalFileSystem()))
    assert here.segments == there.segments
    assert here.torn is there.torn is None


def test_locations_are_paths_or_uris(tmp_path: Path) -> None:
    for text in (str(tmp_path), f"file://{tmp_path}", tmp_path):
        files, root = open_files(text)
        assert isinstance(files, LocalFiles)
        assert root == str(tmp_path)


@pytest.mark.parametrize("text", ["ftp://host/store", "nonsense://x"])
def test_unknown_schemes_are_one_clear_line(text: str) -> None:
    with pytest.raises(PipelineError) as caught:
        open_files(text)
    assert str(caught.value).startswith(f"cannot use {text}: ")
    assert str(caught.value).endswith("use a local path or file:, hdfs:, s3a:, gs: or abfs:")


def test_what_is_read_is_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    files = CountingFiles(LocalFiles())
    files.read(str(tmp_path / "file"), 90, 100)
    files.read_all(str(tmp_path / "file"))
    assert files.bytes_read == 110
    assert pickle.loads(pickle.dumps(files)).bytes_read == 110


def test_counters_are_summed_and_a_task_tried_again_counts_once(tmp_path: Path) -> None:
    for task in (0, 1, 1):
        write_counters(str(tmp_path / "counters"), task, Counters(1, 100, 10 * (task == 0), 7, 2))
    assert read_counters(tmp_path / "counters") == Counters(2, 200, 10, 14, 4)
    with pytest.raises(PipelineError, match=r"^there are no counters in "):
        read_counters(tmp_path)


def test_an_address_with_a_password_is_refused_without_repeating_it() -> None:
    with pytest.raises(PipelineError, match="pass it in the environment") as refused:
        open_files("s3://key:secret@bucket/store")
    assert "secret" not in str(refused.value)


class KeysOfAnObjectStore:
    """A file system whose keys are any text."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def get_file_info(self, _selector: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(base_name=name, is_file=True, size=1, mtime_ns=None) for name in self._names]


@pytest.mark.parametrize("name", ["..", ".", "a/b", ""])
def test_a_listing_with_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    assert [entry.name for entry in ArrowFiles(KeysOfAnObjectStore("b", "a")).list("/x")] == ["a", "b"]
    with pytest.raises(PathNameError):
        ArrowFiles(KeysOfAnObjectStore("a", name)).list("/x")
