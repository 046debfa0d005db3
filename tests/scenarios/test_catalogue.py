"""Every scenario of docs/spec/scenarios.md is shown by a test in every mode that its row names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.scenarios import catalogue

TESTS: Final = Path(__file__).resolve().parents[1]


def _marks() -> Iterator[tuple[str, str, frozenset[str]]]:
    """Where each mark stands, its scenario, its modes."""
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        if "mark.scenario(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "scenario"
            ):
                name, *modes = (ast.literal_eval(argument) for argument in node.args)
                yield f"{path.relative_to(TESTS)}:{node.lineno}", name, frozenset(modes)


@cache
def _shown() -> dict[str, set[str]]:
    shown: dict[str, set[str]] = defaultdict(set)
    for _, name, modes in _marks():
        shown[name] |= modes
    return shown


@pytest.mark.parametrize("name", sorted(catalogue.REQUIRED))
def test_the_scenario_is_shown_in_every_mode_it_names(name: str) -> None:
    missing = catalogue.REQUIRED[name] - _shown().get(name, set())
    assert not missing, f"no test shows {name} in {', '.join(sorted(missing))}"


def test_marks_name_scenarios_and_modes_that_there_are() -> None:
    known = frozenset().union(*catalogue.REQUIRED.values())
    wrong = [
        f"{place}: {name} {sorted(modes)}"
        for place, name, modes in _marks()
        if name not in catalogue.REQUIRED or not modes or not modes <= known
    ]
    assert not wrong
