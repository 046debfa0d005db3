"""The local engine: its errors are one sentence, its files are whole, and it writes nowhere else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from rewindmq.pipeline.engines.local_engine import LocalEngine
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import LocalFiles

ENGINE = LocalEngine()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with the rows of a query."""
    folder = tmp_path / "saved"
    ENGINE.query("SELECT 7 AS number").save(LocalFiles(), str(folder), folder.as_uri())
    return folder


def test_saved_rows_are_one_file_that_is_read_again(saved: Path) -> None:
    assert [path.name for path in saved.iterdir()] == ["part-00000.parquet"]
    assert ENGINE.saved(LocalFiles(), str(saved), saved.as_uri()).records() == [{"number": 7}]


def test_rows_replace_what_was_saved_before(saved: Path) -> None:
    (saved / "part-00001.parquet").write_bytes((saved / "part-00000.parquet").read_bytes())
    ENGINE.query("SELECT 8 AS number").save(LocalFiles(), str(saved), saved.as_uri())
    assert ENGINE.saved(LocalFiles(), str(saved), saved.as_uri()).collect() == [(8,)]


def test_a_file_with_any_changed_byte_is_read_or_refused_in_one_sentence(saved: Path) -> None:
    """pyarrow raises errors of many types for damaged metadata."""
    path = saved / "part-00000.parquet"
    whole = path.read_bytes()
    refusals = []
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            ENGINE.saved(LocalFiles(), str(saved), saved.as_uri()).records()
        except PipelineError as error:
            refusals.append(str(error))
    assert refusals
    assert all(text.startswith(f"cannot read {path}: ") and "\n" not in text for text in refusals)


@pytest.mark.parametrize("keep", [slice(0, 0), slice(0, 40), slice(40, None)], ids=["empty", "start", "end"])
def test_a_part_of_a_file_is_refused_in_one_sentence(saved: Path, keep: slice) -> None:
    path = saved / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[keep])
    refused(saved, f"cannot read {path}: ")


def test_a_folder_in_place_of_the_file_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").mkdir()
    refused(tmp_path, f"cannot read {tmp_path}/x.parquet: Is a directory")


def refused(folder: Path, beginning: str) -> None:
    with pytest.raises(PipelineError) as failed:
        ENGINE.saved(LocalFiles(), str(folder), folder.as_uri()).records()
    assert str(failed.value).startswith(beginning)
    assert "\n" not in str(failed.value)


def test_a_file_without_the_columns_of_a_query_is_refused_in_one_sentence(saved: Path) -> None:
    rows = ENGINE.saved(LocalFiles(), str(saved), saved.as_uri())
    with pytest.raises(
        PipelineError,
        match=r"the local engine cannot answer a query: .*place. not found.*; try --engine spark",
    ) as failed:
        ENGINE.query("SELECT place FROM {rows}", rows=rows).records()
    assert "\n" not in str(failed.value)


def test_a_query_that_needs_the_disk_uses_the_temporary_folder_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    ((folder,),) = ENGINE.query("SELECT current_setting('temp_directory')").collect()
    assert Path(folder).parent == temporary
    assert [*work.iterdir(), *temporary.iterdir()] == []
