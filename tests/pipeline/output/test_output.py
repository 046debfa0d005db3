"""Outputs of jobs: published in one step, resumed, and never written over other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import LocalFiles
from rewindmq.pipeline.output.output import JobOutput, Manifest, read_manifest

SOURCE = [{"location": "/store", "begin": 0, "end": 100}]


class Killed(BaseException):
    """Ends a process in the middle."""


def write(output: JobOutput, text: str) -> None:
    output.files.publish(f"{output.draft}/file", text.encode())


def publish(out: Path, text: str) -> JobOutput:
    output = JobOutput(out, "job", {"a": 1})
    output.begin(SOURCE)
    write(output, text)
    output.publish(SOURCE, {"found": text})
    return output


def test_each_publication_is_a_generation_that_replaces_the_one_before(tmp_path: Path) -> None:
    for number, text in enumerate(("one", "two"), 1):
        output = publish(tmp_path / "out", text)
        assert (tmp_path / "out/current/file").read_text() == text
        names = {path.name for path in (tmp_path / "out").iterdir()}
        assert names == {"manifest.json", "current", f"generation-{number}"}
        manifest = read_manifest(output.files, output.root)
        assert manifest is not None
        assert (manifest.generation, manifest.source, manifest.facts) == (number, SOURCE, {"found": text})


def test_a_finished_step_is_not_repeated_and_an_unfinished_step_starts_again(tmp_path: Path) -> None:
    output = JobOutput(tmp_path / "out", "job", {})
    output.begin(SOURCE)
    assert output.step("first") is None
    output.files.publish(f"{output.folder('first')}/rows", b"")
    output.finish("first", {"count": 3})
    output.files.publish(f"{output.folder('second')}/rows", b"")
    again = JobOutput(tmp_path / "out", "job", {})
    grown = [{**SOURCE[0], "end": 200}]
    assert again.begin(grown) == SOURCE
    assert again.step("first") == {"count": 3}
    assert again.step("second") is None
    assert not Path(again.folder("second")).exists()
    again.discard()
    assert again.begin(grown) == grown
    assert again.step("first") is None


@pytest.mark.parametrize("options", [{"a": 2}, {}])
def test_an_interrupted_run_of_other_options_is_not_gone_on_with(
    tmp_path: Path, options: dict[str, int]
) -> None:
    output = JobOutput(tmp_path / "out", "job", {"a": 1})
    output.begin(SOURCE)
    output.finish("first", {})
    other = JobOutput(tmp_path / "out", "job", options)
    other.begin(SOURCE)
    assert other.step("first") is None


@pytest.mark.parametrize("calls", [0, 1], ids=["before the draft", "before the steps"])
def test_a_discarded_run_that_is_killed_on_the_way_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    output = JobOutput(tmp_path / "out", "job", {"a": 1})
    output.begin(SOURCE)
    write(output, "new")
    output.finish("first", {"count": 1})
    left = calls
    remove = LocalFiles.remove_tree

    def die(files: LocalFiles, path: str) -> None:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        remove(files, path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, "remove_tree", die)
        with pytest.raises(Killed):
            output.discard()
    again = JobOutput(tmp_path / "out", "job", {"a": 1})
    again.begin(SOURCE)
    assert again.step("first") is None
    assert not Path(again.draft).exists()


@pytest.mark.parametrize("before", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("place", ["publish", "point", "remove_tree"])
def test_a_publication_that_is_cut_off_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, *, before: bool
) -> None:
    """A run is killed before each change of the folder; the next run publishes the finished steps."""
    out = tmp_path / "out"
    if before:
        publish(out, "old")
    output = JobOutput(out, "job", {"a": 1})
    output.begin(SOURCE)
    write(output, "new")

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(LocalFiles, place, die)
        with pytest.raises(Killed):
            output.publish(SOURCE, {})
    is_published = place in ("point", "remove_tree")
    if before and place != "remove_tree":
        assert (out / "current/file").read_text() == "old"
    again = JobOutput(out, "job", {"a": 1})
    again.settle()
    if is_published:
        assert again.published is not None
    else:
        assert again.begin(SOURCE) == SOURCE
        again.publish(SOURCE, {})
    assert (out / "current/file").read_text() == "new"
    generation = 2 if before else 1
    assert {path.name for path in out.iterdir()} == {"manifest.json", "current", f"generation-{generation}"}


def test_settling_leaves_an_interrupted_run_as_it_is(tmp_path: Path) -> None:
    publish(tmp_path / "out", "old")
    output = JobOutput(tmp_path / "out", "job", {"a": 1})
    output.begin(SOURCE)
    output.finish("first", {"count": 1})
    again = JobOutput(tmp_path / "out", "job", {"a": 1})
    again.settle()
    again.begin(SOURCE)
    assert again.step("first") == {"count": 1}


def test_what_is_something_else_is_refused(tmp_path: Path) -> None:
    publish(tmp_path / "out", "old")
    with pytest.raises(PipelineError, match="is the output of job; choose another for other"):
        JobOutput(tmp_path / "out", "other", {})
    with pytest.raises(PipelineError, match="was made with a 1, not 2; choose another output"):
        JobOutput(tmp_path / "out", "job", {"a": 2})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").touch()
    with pytest.raises(PipelineError, match="holds other files"):
        JobOutput(tmp_path / "full", "job", {})
    with pytest.raises(PipelineError, match="is a file"):
        JobOutput(tmp_path / "full" / "precious", "job", {})
    (tmp_path / "out" / "manifest.json").write_text('{"format": 9}')
    with pytest.raises(PipelineError, match="has format 9"):
        JobOutput(tmp_path / "out", "job", {})
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(PipelineError, match="cannot read"):
        JobOutput(tmp_path / "out", "job", {})


def test_a_manifest_says_where_its_files_are() -> None:
    assert Manifest("job", 7, {}, [], {}).folder == "generation-7"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"\xff": 1}', b"[" * 100_000, b"{}"])
@pytest.mark.parametrize("name", ["manifest.json", "staging/run.json"])
def test_a_damaged_file_is_a_sentence_that_helps(tmp_path: Path, name: str, data: bytes) -> None:
    publish(tmp_path / "out", "old")
    path = tmp_path / "out" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    with pytest.raises(PipelineError, match=rf"cannot read .*/{name}: .*run the job again with a new output"):
        JobOutput(tmp_path / "out", "job", {"a": 1}).begin(SOURCE)


def test_damaged_findings_of_a_step_are_a_sentence_that_helps(tmp_path: Path) -> None:
    output = JobOutput(tmp_path / "out", "job", {"a": 1})
    output.begin(SOURCE)
    output.finish("first", {"count": 1})
    (tmp_path / "out/staging/first.json").write_bytes(b'{"count": \xff}')
    with pytest.raises(PipelineError, match=r"cannot read .*first\.json: .*run the job again"):
        JobOutput(tmp_path / "out", "job", {"a": 1}).step("first")
