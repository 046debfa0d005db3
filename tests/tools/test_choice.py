"""What CI leaves to ``--full``: the marker says why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import importing_environment

TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow(full_only="seed 1 shows it"))])
def test_slow(seed): pass

@pytest.mark.interop(full_only="no figure is asserted")
def test_interop(): pass
"""
# ``--full`` is an option of tests/conftest.py.
OPTIONS = """
def pytest_addoption(parser):
    parser.addoption("--full", action="store_true")
"""


def collected(folder: Path, tests: str, *words: str) -> tuple[int, list[str], str]:
    """Return pytest's exit code, the tests that it collects, and its output."""
    (folder / "test_it.py").write_text(tests)
    (folder / "conftest.py").write_text(OPTIONS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  interop\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.choice", "--collect-only", "-q", *words]
    run = subprocess.run(
        command, cwd=folder, env=importing_environment(), capture_output=True, text=True, check=False
    )
    output = run.stdout + run.stderr
    return (
        run.returncode,
        [line[12:] for line in output.splitlines() if line.startswith("test_it.py::")],
        output,
    )


@pytest.mark.slow
def test_only_a_full_run_has_what_ci_need_not_run(tmp_path: Path) -> None:
    assert collected(tmp_path, TESTS)[1] == ["test_quick", "test_slow[1]"]
    assert collected(tmp_path, TESTS, "-m", "slow")[1] == ["test_slow[1]"]
    assert collected(tmp_path, TESTS, "--full")[1] == [
        "test_quick",
        "test_slow[1]",
        "test_slow[2]",
        "test_interop",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("marker", ['slow("why")', "slow(why=1)", 'slow(full_only="")', "interop(full=True)"])
def test_a_marker_takes_a_reason_and_nothing_else(marker: str, tmp_path: Path) -> None:
    tests = f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(): pass\n"
    code, _, output = collected(tmp_path, tests)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert f'test_it: {marker.partition("(")[0]} takes full_only="why CI need not run it" only' in output
