"""``@simulated`` in runs of pytest of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_INI = """\
[pytest]
addopts = -p no:cacheprovider -p rewindmq.testing.plugin -q
"""
_PAGE = Path(__file__).resolve().parents[3] / "docs" / "testkit" / "simulation.md"


def run_pytest(folder: Path, text: str, *arguments: str, hash_seed: str = "0") -> tuple[int, str]:
    """Run pytest on one test file; return its exit code and its output."""
    (folder / "pytest.ini").write_text(_INI)
    (folder / "test_it.py").write_text(text)
    words = [sys.executable, "-m", "pytest", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "COLUMNS": "200"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


def page_program() -> str:
    (program,) = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    return str(program)


def report(output: str) -> list[str]:
    """Return the lines of the report after the seed."""
    lines = [line[1:].strip() for line in output.splitlines() if line.startswith("E ")]
    (start,) = [number for number, line in enumerate(lines) if line.startswith("a shortened schedule")]
    return lines[start:]


def test_the_example_of_the_page_fails_alike_in_every_process(tmp_path: Path) -> None:
    code, output = run_pytest(tmp_path, page_program(), hash_seed="1")
    assert code == 1
    # With CI set, pytest's summary repeats the line.
    (seed,) = set(re.findall(r"--rewindmq-seed (\d+)", output))
    code, alone = run_pytest(tmp_path, page_program(), "--rewindmq-seed", seed, hash_seed="2")
    assert code == 1
    assert f"seed {seed} fails, 0 seeds passed before" in alone
    assert report(alone) == report(output)
    assert any("PULL_MESSAGE (topic customers-sim" in line for line in report(output))


def test_marker_fixtures_and_parameters_reach_a_simulated_test(tmp_path: Path) -> None:
    text = """
import pytest
from rewindmq.testing import Rmq, simulated

class TestIt:
    @pytest.mark.rewindmq(brokers=2, profile="v53")
    @pytest.mark.parametrize("count", [1, 2])
    @simulated(seeds=3)
    async def test_it(self, rmq: Rmq, count: int, tmp_path, request) -> None:
        info = await rmq.admin.brokers.examine_broker_cluster_info()
        assert sorted(info.broker_addr_table) == ["broker-a", "broker-b"]
        (tmp_path / "seen").open("a").write("x")
        print("ran", request.node.name, count)
"""
    code, output = run_pytest(tmp_path, text, "-s", "--strict-markers")
    assert code == 0, output
    assert output.count("ran test_it[1] 1") == output.count("ran test_it[2] 2") == 3
    code, output = run_pytest(tmp_path, text, "-s", "--rewindmq-seeds", "5")
    assert output.count("ran test_it[1] 1") == 5
