"""docs/compatibility.md claims what docs/compatibility.json holds, and that holds what tests have shown."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLIENT_TESTS = "tests/interop/test_clients.py::test_scenario"


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


@pytest.fixture(scope="module")
def results(document: ModuleType) -> Any:
    return sys.modules["tools.interop.results"]


def report(test: str, outcome: str = "passed", when: str = "call", reason: str = "", *why: str) -> Any:
    return pytest.TestReport(
        test,
        ("", 0, test),
        {},
        outcome,  # type: ignore[arg-type]
        (test, 1, f"Skipped: {reason}") if reason else None,
        when,  # type: ignore[arg-type]
        user_properties=[("explained", text) for text in why],
    )


def test_the_committed_page_says_what_the_committed_results_hold(document: ModuleType, results: Any) -> None:
    committed = document.TARGET.read_text()
    assert committed == document.render(results.read()), "run ./scripts/generate_compatibility_doc"


def test_the_committed_results_are_written_as_a_run_writes_them(results: Any) -> None:
    assert results.COMMITTED.read_text() == results.written(results.read())


def test_reports_become_results(results: Any) -> None:
    recorder = results.Recorder()
    for each in (
        report(f"{CLIENT_TESTS}[a-at-x-send]", when="setup"),
        report(f"{CLIENT_TESTS}[a-at-x-send]"),
        report(f"{CLIENT_TESTS}[a-at-x-send]", when="teardown"),
        report(f"{CLIENT_TESTS}[a-at-x-pull]", "skipped", "call", "the library has no pull.start"),
        report(f"{CLIENT_TESTS}[a-at-x-push]", "failed"),
        report(f"{CLIENT_TESTS}[a-at-x-lock]", "passed", "call", "", "it counts differently", "it rounds"),
        report(f"{CLIENT_TESTS}[b-at-x-send]", "skipped", "setup", "go is not on the PATH"),
        report("tests/interop/test_stores.py::test_all", "passed"),
        report("tests/interop/test_stores.py::test_all", "failed", "teardown"),
        report("tests/client/test_parts.py::test_other", "failed"),
    ):
        recorder.add(each)
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
    assert recorder.unseen == [f"{CLIENT_TESTS}[b-at-x-send]"]


def test_what_two_runs_tell_differently(results: Any) -> None:
    one = {"m": {"f": {"a": "works", "b": "works", "c": "works"}}}
    other = {"m": {"f": {"a": "works", "b": "lacks pull.start", "d": "works"}}}
    assert results.differences(one, one) == []
    assert results.differences(one, other) == [
        "m::f[b]: works, committed: lacks pull.start",
        "m::f[c]: works, committed: not there",
        "m::f[d]: not there, committed: works",
    ]


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
    assert f"## Clients at {server}, beside rocketmq-4.9.7" in page
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
    assert "| Bad input, answered as the real name server and broker answer it | 2 | 1 |" in page


@pytest.mark.parametrize("marked", ["interop", "not interop"])
def test_a_whole_run_that_shows_something_else_fails(tmp_path: Path, marked: str) -> None:
    """With the hooks of the suite itself, in a suite of one test."""
    suite = tmp_path / "tests" / "interop"
    suite.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "compatibility.json").write_text(
        '{"test_one": {"test_it": {"": "lacks everything"}}}'
    )
    (tmp_path / "tools" / "interop").mkdir(parents=True)
    packages = ("tools", "tools/interop", "tests", "tests/interop")
    copied = ("tools/interop/results.py", "tests/conftest.py", "tests/interop/conftest.py")
    for name in (*(f"{package}/__init__.py" for package in packages), *copied):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (suite / "test_one.py").write_text("def test_it():\n    pass\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --import-mode=importlib\npythonpath = .\nmarkers = interop: x\n"
    )
    if marked == "interop":
        (suite / "test_one.py").write_text(
            "import pytest\n\n@pytest.mark.interop\ndef test_it():\n    pass\n"
        )

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-m", marked, "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    code, text = run("tests")
    assert "1 passed" in text, text
    if marked == "interop":
        assert code == 1
        assert "test_one::test_it: works, committed: lacks everything" in text
        # Part of the suite proves nothing either way.
        assert run("tests", "-k", "it")[0] == 0
        assert run("tests", "--interop-results", "docs/compatibility.json")[0] == 0
    assert run("tests")[0] == 0
