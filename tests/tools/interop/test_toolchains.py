"""Tools that a machine lacks, such as Java or Go, are named, and the tests that need them do not pass."""

from __future__ import annotations

import fcntl
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.interop import conftest as hooks
from tests.support import interop_results
from tools.interop import toolchains
from tools.interop.results import ResultRecorder
from tools.interop.toolchains import ToolMissing, built, missing_tools, rust_driver, tool


@pytest.fixture
def no_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("no_tools")
def test_every_missing_tool_has_a_line_of_its_own() -> None:
    lines = missing_tools()
    assert [line.split()[0] for line in lines] == ["java", "mvn", "go", "node", "npm"]
    assert all(" is not on the PATH: install " in line and "\n" not in line for line in lines)


@pytest.mark.usefixtures("no_tools")
def test_a_tool_that_only_a_full_run_needs_is_named_when_its_driver_is_built() -> None:
    with pytest.raises(ToolMissing, match=r"^cargo is not on the PATH: install Rust"):
        rust_driver()


def test_an_installed_tool_is_not_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = tmp_path / "go"
    executable.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool("go") == str(executable)
    assert not [line for line in missing_tools() if line.startswith("go ")]


@pytest.mark.usefixtures("no_tools")
def test_a_test_without_its_tool_is_skipped_and_never_passes() -> None:
    call = hooks.pytest_runtest_call()
    next(call)
    with pytest.raises(pytest.skip.Exception, match="mvn is not on the PATH"):
        call.throw(ToolMissing("mvn is not on the PATH: install Maven"))


def _session(groups: Sequence[str]) -> pytest.Session:
    items = [
        SimpleNamespace(get_closest_marker=lambda name, own=own: own if own == name else None)
        for own in groups
    ]
    return cast("pytest.Session", SimpleNamespace(items=items))


@pytest.mark.usefixtures("no_tools")
@pytest.mark.parametrize(("is_ci", "group"), [(False, "interop"), (True, "long")])
def test_a_run_outside_ci_or_without_need_for_tools_goes_on(
    monkeypatch: pytest.MonkeyPatch, group: str, is_ci: bool
) -> None:
    monkeypatch.setenv("CI", "true" if is_ci else "")
    hooks.pytest_collection_finish(_session([group]))


@pytest.mark.usefixtures("no_tools")
def test_ci_fails_at_once_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.exit.Exception, match="java is not on the PATH") as failure:
        hooks.pytest_collection_finish(_session(["long", "interop"]))
    assert "\n" not in str(failure.value)


def test_tests_that_did_not_run_are_listed_at_the_end_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = ResultRecorder()
    recorder.unseen = {"go is not on the PATH": ["tests/interop/test_clients.py::test_scenario[go]"]}
    monkeypatch.setattr(interop_results, "_recorder", recorder)
    monkeypatch.setattr(interop_results, "_contradictions", [])
    told: list[str] = []
    terminal = SimpleNamespace(section=told.append, line=told.append)
    interop_results.pytest_terminal_summary(cast("pytest.TerminalReporter", terminal))
    assert told == ["not run", "1 tests of test_clients: go is not on the PATH"]


def test_a_finished_build_is_used_while_another_process_builds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(toolchains, "BUILT", tmp_path / "built")
    project = tmp_path / "project"
    project.mkdir()
    builds: list[Path] = []
    first = built("it", project, lambda work, target: builds.append(target))
    with (tmp_path / "built" / "build.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert built("it", project, lambda work, target: builds.append(target)) == first
    assert len(builds) == 1
