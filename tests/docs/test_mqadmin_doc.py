"""docs/mqadmin.md shows the results of mqadmin's commands in docs/compatibility.json."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tools.interop import results
from tools.interop.mqadmin_cases import CHANGING, LOOKING, RESETTING, V4, V5
from tools.interop.mqadmin_commands import COMMANDS
from tools.interop.mqadmin_refusals import NOT_RUN, REFUSALS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def document() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mqadmin_doc", ROOT / "scripts" / "mqadmin_doc.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(page: str) -> dict[str, list[str]]:
    """Each command's cells."""
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {first[3:-1]: [cell.removesuffix(" |") for cell in cells] for first, *cells in lines}


def test_the_committed_page_says_what_the_committed_results_hold(document: ModuleType) -> None:
    page = document.render(results.read())
    assert document.TARGET.read_text() == page, "run ./scripts/generate_mqadmin_doc"


def test_every_command_has_a_result_or_a_reason(document: ModuleType) -> None:
    found = rows(document.render(results.read()))
    assert found.keys() == {name for listed in COMMANDS.values() for name in listed}
    wrong = {name: cells for name, cells in found.items() if {"not tested", "failed"} & {*cells}}
    assert wrong == {}


@pytest.mark.parametrize("release", [V4, V5])
def test_every_tested_command_is_one_of_the_release(release: str) -> None:
    lines = [case.line for case in LOOKING + CHANGING + RESETTING if release in case.matches]
    lines += [refusal.line for refusal in REFUSALS[release]]
    assert {line.partition(" ")[0] for line in lines} <= {*COMMANDS[release]}
    assert NOT_RUN.keys() <= {*COMMANDS[release]}


def test_a_command_is_refused_only_if_every_line_of_it_is(document: ModuleType) -> None:
    refused = "works: refused: there is no such thing"
    tests = {
        "topicList": "works",
        "statsAll": "works",
        "statsAll -a": refused,
        "deleteAclConfig -a b": refused,
        "topicRoute -t a-0-b": "fails",
        "topicRoute": "works",
        "updateTopic -t a": "works: other keys",
    }
    page = document.render({"test_mqadmin": {"Test498::test_it": tests, "Test550Resets::test_it": tests}})
    found = rows(page)
    assert found["topicList"] == ["same", "same"]
    assert found["deleteAclConfig"][0].startswith("refused, note ")
    assert found["statsAll"][0].startswith("same, note ")
    assert found["topicRoute"] == ["failed", "failed"]
    assert found["deleteAclConfig"][1] == "–"
    assert found["topicStatus"] == ["not tested", "not tested"]
    assert any(line.endswith(". there is no such thing") for line in page.splitlines())
    assert any(line.endswith(". other keys") for line in page.splitlines())
