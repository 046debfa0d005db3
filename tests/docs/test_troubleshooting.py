"""docs/troubleshooting.md quotes log lines and errors as the programs write them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
SOURCES = ("protocol", "namesrv", "broker", "client")
# With fewer characters besides its placeholders, a text such as "closing %s: %s" proves nothing.
LEAST_LITERAL = 12
_LOG_BLOCK = re.compile(r"^```log\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CLOSING = re.compile(r"closing \S+: ")
_PLACEHOLDER = re.compile(r"%(?:\.\d+)?[a-z]")
_ANYTHING = ".+"

QUOTED = [line for block in _LOG_BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]


def _pattern(pieces: list[str]) -> str | None:
    """Return a pattern for a text whose placeholders lie between the pieces; None if it is too short."""
    if sum(map(len, pieces)) < LEAST_LITERAL:
        return None
    return _ANYTHING.join(map(re.escape, pieces))


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yield a pattern for each text in a program."""
    for node in ast.walk(tree):
        pieces: list[str] | None = None
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
            text = "".join("\0" if part is None else str(part) for part in parts)
            pieces = re.split("\0+", text)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            pieces = _PLACEHOLDER.split(node.value)
        pattern = _pattern(pieces) if pieces else None
        if pattern is not None:
            yield pattern


@cache
def _patterns() -> list[re.Pattern[str]]:
    files = (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py"))
    return [re.compile(pattern) for path in files for pattern in _texts(ast.parse(path.read_text()))]


def _is_written(line: str) -> bool:
    forms = {line, _CLOSING.sub("", line, count=1)}
    return any(pattern.fullmatch(form) for form in forms for pattern in _patterns())


@pytest.mark.parametrize("line", QUOTED)
def test_each_quoted_line_is_a_text_of_the_programs(line: str) -> None:
    assert _is_written(line)


@pytest.mark.parametrize(
    "line",
    [
        "closing 10.0.0.5:51234: it speaks something else",
        "no response from 127.0.0.1:10911 in 3000 ms",
        "a sentence that no program writes",
    ],
)
def test_a_line_that_no_program_writes_is_found(line: str) -> None:
    assert not _is_written(line)
