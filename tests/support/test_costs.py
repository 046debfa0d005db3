"""What ``--costs`` prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.costs import table
from tests.support.repository import importing_environment

COMPUTING = """
import subprocess, sys, time

def test_here():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass

def test_in_a_process():
    code = "import time\\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


def test_a_folder_that_costs_little_is_summed_up_in_the_one_around_it() -> None:
    seconds = {
        "tests/a/b/test_x.py": 7.0,
        "tests/a/c/test_y.py": 4.0,
        "tests/a/test_z.py": 2.0,
        "t/test_q.py": 1.0,
    }
    assert list(table(seconds)) == [
        "    7.0 s  tests/a/b",
        "    6.0 s  tests/a",
        "    1.0 s  the rest",
        "   14.0 s  in all",
    ]


@pytest.mark.slow
def test_time_of_tests_in_all_processes_and_of_their_children_is_counted(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(COMPUTING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.costs", "--costs", "-n", "2", "-q"]
    run = subprocess.run(
        command, cwd=tmp_path, env=importing_environment(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    total = next(line for line in run.stdout.splitlines() if line.endswith("in all"))
    # 0.8 s are computed; starting Python costs some more.
    assert 0.8 <= float(total.split()[0]) < 8, run.stdout
