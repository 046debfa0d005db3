"""``scripts/test``: groups that a machine cannot run are named, and one summary counts all that were run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Container
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from _pytest.mark.expression import Expression

from tests.support.repository import ROOT, importing_environment
from tools.suite import __main__ as suite_command
from tools.suite import pytest_run
from tools.suite.groups import DEFAULT, INTEROP, SLOW, SuiteGroup, in_full
from tools.suite.machine import JDK, Tool
from tools.suite.outcome import CaseVerdict, SuiteOutcome
from tools.suite.pytest_run import (
    INTERRUPTED,
    NO_TESTS,
    PASSED,
    GroupResult,
    PytestRun,
    ignored,
    is_compiled,
    processes,
)
from tools.suite.running import run_groups, split
from tools.suite.summary import NotRun, exit_code, summary
from tools.suite.type_check import checking_types

# Only one more than this process has, because a busy machine delays processes of the lowest priority.
NICENESS: Final = min(os.getpriority(os.PRIO_PROCESS, 0) + 1, 19)
ABSENT: Final = Tool("a loom", lambda: False, "buy one")
PRESENT: Final = Tool("a shell", lambda: True, "")
PLUGIN: Final = ("-p", "tests.support.outcomes", "-p", "no:cacheprovider")


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a suite of four marked tests; it is the current directory."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  good\n  bad\n  nice\n")
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(f"""\
        import os

        import pytest

        @pytest.mark.good
        def test_good(): pass

        @pytest.mark.good
        def test_skipped(): pytest.skip("no reason")

        @pytest.mark.bad
        def test_bad(): assert False

        @pytest.mark.nice
        def test_nice(): assert os.nice(0) == {NICENESS}
        """)
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", importing_environment()["PYTHONPATH"])
    return tmp_path


def result(code: int, *verdicts: CaseVerdict) -> GroupResult:
    outcomes = tuple(SuiteOutcome(f"test_{number}", verdict, 1.0) for number, verdict in enumerate(verdicts))
    return GroupResult(SuiteGroup("a group", "x"), code, outcomes, 61.0)


def test_a_group_that_needs_a_missing_tool_is_not_run_and_is_named() -> None:
    able, unable = split(
        [SuiteGroup("weaving", "w", (PRESENT, ABSENT)), SuiteGroup("walking", "v", (PRESENT,))]
    )
    assert [group.name for group in able] == ["walking"]
    assert unable[0].line() == "not run: weaving, which needs a loom (buy one)"
    lines = list(summary([result(PASSED, CaseVerdict.PASSED)], unable))
    assert lines[-2:] == [unable[0].line(), "1 passed, 0 failed, 0 skipped"]


def test_every_test_of_every_group_is_counted(suite: Path) -> None:
    output = suite / "output"
    results = run_groups(
        [SuiteGroup("good", "good"), SuiteGroup("bad", "bad")], PLUGIN, output, one_by_one=True
    )
    assert [found.code for found in results] == [0, 1]
    lines = list(summary(results, []))
    assert "skipped 1: no reason" in lines
    assert "failed: test_it.py::test_bad" in lines
    assert lines[-1] == "1 passed, 1 failed, 1 skipped"
    assert "assert False" in output.read_text()


def test_a_group_beside_the_others_has_its_own_priority(suite: Path) -> None:
    groups = [SuiteGroup("nice", "nice", niceness=NICENESS), SuiteGroup("good", "good")]
    results = run_groups(groups, PLUGIN, suite / "output")
    assert [(found.group.name, found.code) for found in results] == [("good", 0), ("nice", 0)]


def test_the_time_of_a_group_beside_the_others_ends_with_the_group(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time does not go on until the result is read."""
    now = [0.0]
    monkeypatch.setattr(pytest_run, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with (suite / "output").open("w+b") as output:
        run = PytestRun(SuiteGroup("good", "good"), PLUGIN, suite, output, is_beside=True)
        run.stop()
    now[0] = 100.0
    assert run.result().seconds == 0.0


def test_the_processes_of_a_spread_group_share_one_turn(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If each process took a turn, two runs on one machine could wait for each other forever."""
    taken: list[str] = []
    monkeypatch.setattr(pytest_run, "take_turn", lambda: taken.append("turn"))
    with (suite / "output").open("w+b") as output:
        for group in (
            SuiteGroup("real", "good", (JDK,), is_spread=True),
            SuiteGroup("plain", "good", is_spread=True),
        ):
            PytestRun(group, PLUGIN, suite, output).stop()
    assert taken == ["turn"]


@pytest.mark.parametrize(("cores", "default", "interop"), [(1, 2, 1), (2, 3, 2), (4, 4, 4), (64, 4, 4)])
def test_a_group_whose_tests_wait_has_more_processes_than_cores(
    cores: int, default: int, interop: int
) -> None:
    assert [processes(group, cores) for group in (*DEFAULT, *INTEROP)] == [default, interop]


def test_a_new_clone_is_compiled_before_several_processes_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    cache = tmp_path / "tests" / "__pycache__"
    cache.mkdir(parents=True)
    (cache / "conftest.cpython-311.pyc").touch()
    assert not is_compiled(tmp_path)
    (cache / "conftest.cpython-311-pytest-9.2.0.pyc").touch()
    assert is_compiled(tmp_path)


def test_no_compilation_where_python_keeps_no_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "tests").mkdir()
    assert is_compiled(tmp_path)


def collects(group: SuiteGroup, place: str, markers: Container[str]) -> bool:
    """True if a group runs a test of this file or folder that has these markers."""

    def has(name: str, /, **_: object) -> bool:
        return name in markers

    return place not in ignored(group, ROOT) and Expression.compile(group.marker).evaluate(has)


PLACES: Final = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "tests").iterdir()
    if (path / "__init__.py").exists() or path.match("test_*.py")
)


@pytest.mark.parametrize("markers", [(), ("slow",), ("interop",)], ids=["default", "slow", "interop"])
def test_every_test_is_of_one_group(markers: tuple[str, ...]) -> None:
    groups = (*DEFAULT, *SLOW, *INTEROP)
    for place in PLACES:
        # tests/interop/conftest.py gives all tests there the marker, and no other folder has it.
        expected = ("interop" in markers) == (place == "tests/interop")
        found = [group.name for group in groups if collects(group, place, markers)]
        assert len(found) == expected, (place, found)


def test_a_full_run_has_the_tests_of_all_groups() -> None:
    groups = (*DEFAULT, *SLOW, *INTEROP)
    assert [(group.name, group.marker) for group in in_full(groups)] == [
        (group.name, group.marker) for group in groups
    ]


@pytest.mark.parametrize(
    ("words", "names", "rest"),
    [
        ((), ["default"], []),
        (("--slow", "-k", "races"), ["slow, Spark", "slow"], ["-k", "races"]),
        (("--slow", "--interop"), ["slow, Spark", "slow", "interop"], []),
        (("--full",), ["default", "slow, Spark", "slow", "interop"], ["--full"]),
        (("--full", "--interop", "-x"), ["interop"], ["--full", "-x"]),
        (("tests/broker", "--full"), [], ["tests/broker", "--full"]),
    ],
)
def test_options_choose_groups_and_the_rest_is_pytests(
    words: tuple[str, ...], names: list[str], rest: list[str]
) -> None:
    groups, arguments = suite_command.choose(words)
    assert [group.name for group in groups] == names
    assert arguments == rest


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ((PASSED, PASSED), PASSED),
        ((PASSED, 1), 1),
        ((PASSED, NO_TESTS), PASSED),
        ((NO_TESTS, 1), 1),
        ((NO_TESTS, NO_TESTS), NO_TESTS),
        ((PASSED, 3, 1), 3),
        # pytest also returns this code for a file that it cannot import.
        ((PASSED, INTERRUPTED), INTERRUPTED),
    ],
)
def test_one_failed_group_fails_the_run(codes: tuple[int, ...], worst: int) -> None:
    assert exit_code([result(code) for code in codes]) == worst


def test_a_pytest_that_crashes_is_in_the_summary() -> None:
    assert "a group: pytest ended with exit code 139" in summary([result(139)], [])


def test_ci_without_a_tool_fails_at_once_with_one_line(tmp_path: Path) -> None:
    """With a PATH that has no Java, Maven, Go or Node."""
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    command = [sys.executable, "-m", "tools.suite", "--interop"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment | {"CI": "true", "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    first = done.stderr.splitlines()[0]
    assert first.startswith("not run: interop, which needs a JDK, 17 or newer (apt-get install")
    assert "Maven" in first
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_the_groups_beside(suite: Path) -> None:
    (suite / "test_it.py").write_text(
        textwrap.dedent("""\
        import os, signal, time

        import pytest

        @pytest.mark.nice
        def test_nice():
            open("started", "w").close()
            time.sleep(600)

        @pytest.mark.good
        def test_good():
            while not os.path.exists("started"):
                time.sleep(0.01)
            os.kill(os.getppid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        """)
    )
    program = (
        "from tools.suite import running; from tools.suite.groups import SuiteGroup;"
        "running.run_groups([SuiteGroup('nice', 'nice'), SuiteGroup('good', 'good')],"
        f" {PLUGIN!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, check=False)
    assert done.returncode in (-signal.SIGINT, 130)


@pytest.mark.parametrize(("errors", "code"), [(0, PASSED), (1, 1)])
@pytest.mark.parametrize("words", [("--slow",), ("-m", "good")], ids=["groups", "pytest's arguments"])
def test_a_wrong_type_fails_the_run_and_is_printed_after_the_tests(
    words: tuple[str, ...],
    errors: int,
    code: int,
    suite: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    checker = (sys.executable, "-c", f"print('types: {errors} errors'); raise SystemExit({errors})")
    monkeypatch.setattr(suite_command, "checking_types", lambda: checking_types(checker))
    monkeypatch.setattr(suite_command, "_GROUPS", {"--slow": (SuiteGroup("good", "good"),)})
    assert suite_command.main((*words, *PLUGIN)) == code
    printed = capfd.readouterr().out
    assert "1 passed" in printed.partition(f"types: {errors} errors")[0]


def test_a_type_check_ends_with_the_run() -> None:
    with checking_types((sys.executable, "-c", "import time; time.sleep(600)")) as types:
        pass
    assert types.process.returncode == -signal.SIGTERM


def test_docs_testing_explains_each_marker() -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    for marker in ("none", "`slow`", "`interop`"):
        assert f"| {marker} |" in page, marker


def test_not_run_says_how_to_install() -> None:
    assert NotRun("x", (ABSENT, ABSENT)).line().count("buy one") == 2
