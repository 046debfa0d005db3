"""A failing test says why: tasks that hang, logs of its processes, the seed, and how to run it again."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Final

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

from tests.support.repository import importing_environment

PLUGINS: Final = ("-p", "tests.support.scheduling", "-p", "tests.support.failure_report")
SUITE: Final = textwrap.dedent("""\
    import asyncio

    import pytest

    from rewindmq.race.sim import World

    async def stuck():
        await asyncio.Event().wait()

    @pytest.mark.timeout(1)
    def test_hangs():
        asyncio.run(stuck())

    @pytest.mark.parametrize("case", ["a case@home"])
    def test_fails_with_a_log(tmp_path, case):
        (tmp_path / "broker-a.log").write_text("\\n".join(f"line {number}" for number in range(100)))
        assert not case

    def test_fails_in_a_world():
        world = World(seed=4711)

        async def main():
            await world.sleep(60)
            assert False

        world.run(main())

    def test_passes(tmp_path):
        (tmp_path / "unread.log").write_text("nobody reads this")
    """)


@pytest.fixture(scope="module", params=["one process", "two processes"])
def output(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of pytest for a suite whose tests fail."""
    directory: Path = tmp_path_factory.mktemp("suite")
    (directory / "test_it.py").write_text(SUITE)
    (directory / "pytest.ini").write_text("[pytest]\ntimeout_method = signal\n")
    spread = ("-n", "2", "--dist", "loadfile") if request.param == "two processes" else ()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PLUGINS, *spread],
        cwd=directory,
        env=importing_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "3 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    return done.stdout


def test_a_test_that_hangs_fails_with_the_stacks_of_its_tasks(output: str) -> None:
    tasks = output.partition("pending tasks")[2]
    assert "await asyncio.Event().wait()" in tasks


def test_the_ends_of_logs_are_shown_of_failed_tests_alone(output: str) -> None:
    log = output.partition("log broker-a.log")[2]
    assert "line 99" in log
    assert "line 60\n" in log
    assert "line 59\n" not in log
    assert "nobody reads this" not in output


def test_the_seed_and_the_moment_of_a_simulated_world_are_shown(output: str) -> None:
    assert "in World(seed=4711), after 60 virtual seconds" in output


def test_each_failed_test_comes_with_the_command_that_runs_it_again(output: str) -> None:
    commands = output.partition("to run a failed test again")[2]
    assert "./scripts/test 'test_it.py::test_fails_with_a_log[a case@home]' -m ''\n" in commands
    assert "./scripts/test test_it.py::test_hangs -m ''\n" in commands


@pytest.mark.parametrize("name", ["tools.interop.scenarios.resetting", "tests.support.answers"])
def test_an_assert_outside_a_test_file_shows_its_values(name: str) -> None:
    assert isinstance(importlib.import_module(name).__loader__, AssertionRewritingHook)
