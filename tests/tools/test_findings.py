"""``scripts/findings`` runs the findings of its clone and says which have changed."""

import shutil
import subprocess
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[2] / "scripts" / "findings"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone with three findings: one as stated, one that has changed, one without its package."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(_SCRIPT, tmp_path / "scripts")
    findings = tmp_path / "findings"
    findings.mkdir()
    findings.joinpath("same.sh").write_text("echo 1 | diff - /dev/fd/3 3<<'SEEN'\n1\nSEEN\n")
    findings.joinpath("other.sh").write_text("echo 2 | diff - /dev/fd/3 3<<'SEEN'\n1\nSEEN\n")
    findings.joinpath("absent.sh").write_text("echo no package >&2; exit 2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "status", "printed"),
    [
        (["same"], 0, "same: ok\n"),
        (["absent", "same"], 2, "absent: not run\n    no package\nsame: ok\n"),
        (["no_such"], 2, "scripts/findings: there is no findings/no_such.sh\n"),
    ],
)
def test_each_finding_has_a_line_and_the_worst_decides(
    clone: Path, names: list[str], status: int, printed: str
) -> None:
    assert _run(clone, *names) == (status, printed)


def test_without_a_name_all_are_run(clone: Path) -> None:
    status, output = _run(clone)
    assert status == 1
    assert [line for line in output.splitlines() if line[0] != " "] == [
        "absent: not run",
        "other: changed",
        "same: ok",
    ]
    assert "> 1" in output  # what it should have printed


def _run(clone: Path, *names: str) -> tuple[int, str]:
    """Run the clone's script; return its exit status and output."""
    run = subprocess.run(
        [clone / "scripts" / "findings", *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return run.returncode, run.stdout
