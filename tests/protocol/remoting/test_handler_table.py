"""Handlers register themselves: a module of the package is a handler, with its request and its function."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.remoting.handler_table import load_handlers

_NUMBERS = itertools.count()


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, **codes: RequestCode) -> tuple[str, list[str]]:
    """A package with these modules, each the handler of its code; importable under a name of its own."""
    name = f"handlers_of_a_test_{next(_NUMBERS)}"
    (folder / name / "shared").mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    (folder / name / "shared" / "__init__.py").touch()
    for module, code in codes.items():
        text = f"CODE = {int(code)}\n\ndef handle():\n    return {module!r}\n"
        (folder / name / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return name, [str(folder / name)]


def test_every_module_is_the_handler_of_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"send": RequestCode.SEND_MESSAGE, "heart_beat": RequestCode.HEART_BEAT}
    table = load_handlers(*package(tmp_path, monkeypatch, **modules))
    assert {code: handler() for code, handler in table.items()} == {10: "send", 34: "heart_beat"}
    assert list(table) == sorted(table)


def test_two_handlers_of_one_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"pull": RequestCode.PULL_MESSAGE, "pull_again": RequestCode.PULL_MESSAGE}
    with pytest.raises(AssertionError, match="two handlers, pull_again is one"):
        load_handlers(*package(tmp_path, monkeypatch, **modules))
