"""docs/compatibility.md shows docs/compatibility.json, which has the results of the interop tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Literal, cast

import pytest

from tests.support import interop_results as hooks
from tools.interop import results
from tools.interop.results import ResultRecorder

ROOT = Path(__file__).resolve().parents[2]
CLIENT_TESTS = "tests/interop/test_clients.py::test_scenario"
ALL = [str(ROOT / "tests")]


@pytest.fixture(scope="module")
def document() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "compatibility_doc", ROOT / "scripts" / "compatibility_doc.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(
    test: str,
    outcome: Literal["passed", "failed", "skipped"] = "passed",
    when: Literal["setup", "call", "teardown"] = "call",
    reason: str = "",
    why: Sequence[str] = (),
    group: str = "interop",
) -> pytest.TestReport:
    return pytest.TestReport(
        test,
        ("", 0, test),
        {},
        outcome,
        (test, 1, f"Skipped: {reason}") if reason else None,
        when,
        user_properties=[("group", group), *(("explained", text) for text in why)],
    )


def recorded(*reports: pytest.TestReport) -> ResultRecorder:
    recorder = ResultRecorder()
    for each in reports:
        recorder.add(each)
    return recorder


def named_tests(module: ModuleType) -> set[str]:
    """Return the tests of a module as the results name them: ``test_x`` or ``TestY::test_x``."""
    tests = {name for name in vars(module) if name.startswith("test_")}
    classes = {name: value for name, value in vars(module).items() if name.startswith("Test")}
    for name, value in classes.items():
        tests |= {f"{name}::{test}" for test in dir(value) if test.startswith("test_")}
    return tests


@pytest.mark.parametrize("name", results.read())
def test_the_results_name_every_test_of_a_module_and_no_other(name: str) -> None:
    """A test that is renamed would otherwise fail the interop group at its end."""
    module = importlib.import_module(f"tests.interop.{name}")
    assert set(results.read()[name]) == named_tests(module)


def item(group: str) -> pytest.Item:
    """A collected test, as far as the recorder looks at it."""
    found = SimpleNamespace(get_closest_marker=lambda name: name if name == group else None)
    return cast("pytest.Item", found)


def test_the_committed_page_says_what_the_committed_results_hold(document: ModuleType) -> None:
    committed = document.TARGET.read_text()
    assert committed == document.render(results.read()), "run ./scripts/generate_compatibility_doc"


def test_the_committed_results_are_written_as_a_run_writes_them() -> None:
    assert results.COMMITTED.read_text() == results.written(results.read())


def test_reports_become_results() -> None:
    recorder = recorded(
        report(f"{CLIENT_TESTS}[a-at-x-send]", when="setup"),
        report(f"{CLIENT_TESTS}[a-at-x-send]"),
        report(f"{CLIENT_TESTS}[a-at-x-send]", when="teardown"),
        report(f"{CLIENT_TESTS}[a-at-x-pull]", "skipped", "call", "the library has no pull.start"),
        report(f"{CLIENT_TESTS}[a-at-x-push]", "failed"),
        report(f"{CLIENT_TESTS}[a-at-x-lock]", why=("it counts differently", "it rounds")),
        report(f"{CLIENT_TESTS}[b-at-x-send]", "skipped", "setup", "go is not on the PATH"),
        report("tests/interop/test_stores.py::test_all", "passed"),
        report("tests/interop/test_stores.py::test_all", "failed", "teardown"),
        report("tests/client/core/test_route.py::test_other", "failed", group="long"),
    )
    assert recorder.results == {
        "test_clients": {
            "test_scenario": {
                "a-at-x-send": "works",
                "a-at-x-pull": "lacks pull.start",
                "a-at-x-push": "fails",
                "a-at-x-lock": "works: it counts differently; it rounds",
            }
        },
        "test_stores": {"test_all": {"": "fails"}},
    }
    assert recorder.unseen == {"go is not on the PATH": [f"{CLIENT_TESTS}[b-at-x-send]"]}


def test_results_that_differ_between_two_runs() -> None:
    one = {"m": {"f": {"a": "works", "b": "works", "c": "works"}}}
    other = {"m": {"f": {"a": "works", "b": "lacks pull.start", "d": "works"}}}
    assert results.differences(one, one, is_whole=True) == []
    of_the_shown = ["m::f[b]: works, committed: lacks pull.start", "m::f[c]: works, committed: not there"]
    assert results.differences(one, other, is_whole=False) == of_the_shown
    of_all = [*of_the_shown, "m::f[d]: not there, committed: works"]
    assert results.differences(one, other, is_whole=True) == of_all


def test_every_result_has_a_sign_on_the_page(document: ModuleType) -> None:
    client, other = document.CLIENTS[:2]
    server = "rewindmq-v49"
    shown = ["works", "works: it counts differently", "lacks pull.start", "fails"]
    features = list(document.SCENARIOS)
    tests = {
        f"{client.name}-at-{server}-{feature}": text for feature, text in zip(features, shown, strict=False)
    }
    tests[f"{other.name}-at-{server}-{features[0]}"] = "works: it counts differently"
    page = document.render(
        {
            "test_clients": {"test_scenario": tests},
            "test_stores": {"test_it_is_read": {"a | b": "works"}},
            "test_mqadmin": {
                "Test498::test_prints_the_same": {"topicList": "works", "topicStatus": "fails"},
                "Test550Resets::test_prints_the_same": {"topicList": "works"},
            },
            "test_bad_input": {"test_bad_input": {"a": "works", "b": "fails"}},
        }
    )
    titles = [document.SCENARIOS[feature].title for feature in features]
    assert f"## Clients at {server}, compared with rocketmq-4.9.7" in page
    assert [line for line in page.splitlines() if any(line.startswith(f"| {t} |") for t in titles[:5])] == [
        f"| {titles[0]} | ✓ | ✓ 1 |",
        f"| {titles[1]} | ✓ 1 | ? |",
        f"| {titles[2]} | – | ? |",
        f"| {titles[3]} | ✗ | ? |",
        f"| {titles[4]} | ? | ? |",
    ]
    assert "1. it counts differently" in page
    assert "| it is read | `a \\| b` | ✓ |" in page
    assert "| what | case | 4.9.8 | 5.5.0 resets |" in page
    assert "| prints the same | `topicList` | ✓ | ✓ |" in page
    assert "| prints the same | `topicStatus` | ✗ | ? |" in page
    assert "| Bad input gets the same answer as from RocketMQ | 2 | 1 |" in page


SHOWN = report("tests/interop/test_one.py::test_it")
COMMITTED: results.Results = {"test_one": {"test_it": {"": "works"}, "test_more": {"": "works"}}}


def test_a_whole_run_is_compared_with_every_claim() -> None:
    assert recorded(SHOWN).contradictions(COMMITTED, ALL) == [
        "test_one::test_more: not there, committed: works"
    ]


def test_a_partial_run_is_compared_only_with_its_own_scenarios() -> None:
    recorder = recorded(SHOWN)
    recorder.leave_out([item("interop")])
    assert recorder.contradictions(COMMITTED, ALL) == []
    claimed: results.Results = {"test_one": {"test_it": {"": "lacks everything"}}}
    assert recorder.contradictions(claimed, ALL) == ["test_one::test_it: works, committed: lacks everything"]


def test_a_run_is_whole_without_tests_of_other_groups() -> None:
    recorder = recorded(SHOWN)
    recorder.leave_out([item("long")])
    assert len(recorder.contradictions(COMMITTED, ALL)) == 1


@pytest.mark.parametrize(
    ("path", "reports"),
    [
        ("tests/interop/test_one.py", [SHOWN]),
        ("tests", [SHOWN, report("tests/interop/test_one.py::test_more", "skipped", "setup", "no go")]),
    ],
)
def test_an_incomplete_run_is_not_compared_with_all_scenarios(
    path: str, reports: list[pytest.TestReport]
) -> None:
    assert recorded(*reports).contradictions(COMMITTED, [str(ROOT / path)]) == []


@pytest.mark.parametrize("claim", ["works", "lacks everything"])
def test_a_passed_run_fails_if_the_page_shows_something_else(
    claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the hooks of the suite itself."""
    monkeypatch.setattr(hooks, "_recorder", recorded(SHOWN))
    monkeypatch.setattr(hooks, "_contradictions", [])
    monkeypatch.setattr(hooks, "read", lambda: {"test_one": {"test_it": {"": claim}}})
    config = SimpleNamespace(option=SimpleNamespace(interop_results=None, ignore=None), args=ALL)
    session = SimpleNamespace(config=config, exitstatus=pytest.ExitCode.OK)
    hooks.pytest_sessionfinish(cast("pytest.Session", session))
    assert session.exitstatus == (pytest.ExitCode.OK if claim == "works" else pytest.ExitCode.TESTS_FAILED)


@pytest.mark.parametrize("ignored", [None, ["tests/interop"]])
def test_a_run_that_ignores_a_folder_need_not_show_everything(
    ignored: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "_recorder", ResultRecorder())
    monkeypatch.setattr(hooks, "_contradictions", [])
    monkeypatch.setattr(hooks, "read", lambda: {"test_one": {"test_it": {"": "works"}}})
    config = SimpleNamespace(option=SimpleNamespace(interop_results=None, ignore=ignored), args=ALL)
    session = SimpleNamespace(config=config, exitstatus=pytest.ExitCode.OK)
    hooks.pytest_sessionfinish(cast("pytest.Session", session))
    assert session.exitstatus == (pytest.ExitCode.OK if ignored else pytest.ExitCode.TESTS_FAILED)


def test_a_run_can_write_what_it_has_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hooks, "_recorder", recorded(SHOWN))
    target = tmp_path / "results.json"
    config = SimpleNamespace(option=SimpleNamespace(interop_results=str(target), ignore=None), args=ALL)
    session = SimpleNamespace(config=config, exitstatus=pytest.ExitCode.OK)
    hooks.pytest_sessionfinish(cast("pytest.Session", session))
    assert results.read(target) == {"test_one": {"test_it": {"": "works"}}}
