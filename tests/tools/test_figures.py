"""``scripts/compare_size``: the size of a repository at two commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.figures import __main__ as command
from tools.figures.count import Largest, RevisionError, count

PRODUCT = '''\
"""A module."""


class Stage:
    kind: str

    def __init__(self) -> None:
        self.kind, self._seen = "a", [0]
        self._seen[0] = 1
        self.other.count = 2

    def run(self) -> int:
        def inner() -> int:
            return 1

        return inner()
'''


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two commits: a product, then the same with a test and a page."""
    git(tmp_path, "init", "-q")
    commit(tmp_path, "broker/stage.py", PRODUCT)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "broker").symlink_to("../broker")
    commit(tmp_path, "tests/test_stage.py", "class Stage: ...\nclass TestIt: ...\nclass _Own: ...\n")
    commit(tmp_path, "tools/own.py", "class TestIt: ...\nclass _Own: ...\n")
    commit(tmp_path, "docs/page.md", "# A page\n\n| of | four |\n")
    return tmp_path


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *words], cwd=root, check=True)


def commit(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", name)


def test_figures_of_a_commit_are_those_of_its_files(repository: Path) -> None:
    now = count(repository, "HEAD")
    assert (now.product_lines, now.product_files) == (len(PRODUCT.splitlines()), 1)
    assert (now.test_lines, now.test_files, now.words) == (3, 1, 4)
    assert now.function == Largest(5, "broker/stage.py:run")
    assert now.fields == Largest(2, "broker/stage.py:Stage")
    assert now.collisions == ("Stage",)
    first = count(repository, "HEAD~3")
    assert (first.product_lines, first.test_lines, first.words) == (now.product_lines, 0, 0)
    assert first.collisions == ()


@pytest.mark.parametrize("revision", ["nowhere", "--output=x"])
def test_a_commit_that_git_does_not_know_is_an_error(repository: Path, revision: str) -> None:
    with pytest.raises(RevisionError, match=revision):
        count(repository, revision)
    assert not (repository / "x").exists()


def test_the_command_prints_a_table(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_ROOT", repository)
    assert command.main(["--at", "HEAD~1", "--to", "HEAD", "--minutes", "29", "17.4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| | HEAD~1 | HEAD | change |"
    assert "| lines of tests | 3 | 3 | +0 % |" in lines
    assert "| words of documentation | 0 | 4 | – |" in lines
    assert (
        "| lines of the largest function | 5: `broker/stage.py:run` | 5: `broker/stage.py:run` | |" in lines
    )
    assert lines[-1] == "| minutes of CI | 29 | 17.4 | -40 % |"
    assert command.main(["--at", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("compare_size: git cannot read 'nowhere'")
