"""A short soak, as a user runs it: all features, for a minute and a half."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.repository import ROOT

OTHER: Final = pytest.mark.slow(full_only="v49 has every feature that the soak uses")


def soak(*options: str, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.soak", *options],
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=ROOT,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "profile", ["v49", *(pytest.param(profile, marks=OTHER) for profile in ("v42", "v53"))]
)
def test_a_cluster_at_work_keeps_every_promise_while_it_is_killed_and_rewound(
    profile: str, tmp_path: Path
) -> None:
    done = soak("--minutes", "1.5", "--seed", "1", "--profile", profile, "--keep", str(tmp_path), seconds=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no promise was broken" in done.stdout


def test_a_soak_refuses_invalid_options(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    assert "is not empty" in soak("--keep", str(tmp_path), seconds=60).stderr
    wrong = soak("--without", "gravity", seconds=60)
    assert wrong.returncode == 2
    assert "unknown feature gravity; known: " in wrong.stderr
    assert "--minutes" in soak("--help", seconds=60).stdout
