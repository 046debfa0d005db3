"""The numbers that the specification's pages define, and the citations in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ROOT / "docs" / "spec"

_HEADING: Final = re.compile(r"^##+ ([A-E]\.\d+|\d+(?:\.\d+)?)\b\.?(?: ([RS]\d+[ab]?):)?", re.MULTILINE)
# The first cell of a row: a scenario, guard, remedy, trap, hole (S1) or point of conformance.
_ROW: Final = re.compile(r"^\| ([A-E]\d\d[a-z]?|[GFTS]\d+|16\.\d+)\b", re.MULTILINE)
_STEP: Final = re.compile(r"^(\d+)\. ", re.MULTILINE)

_ID: Final = r"(?:[A-E]\.\d+|[A-E]\d\d[a-z]?|[GFTS]\d+|[A-E]|\d+(?:\.\d+)?)(?![\w.]*\w)"
_NEXT: Final = r"(?:,? and |,? to |, |; | )"
_CITED_PAGE: Final = re.compile(rf"docs/spec/([\w-]+\.md)(?:,? ({_ID}(?:{_NEXT}{_ID})*))?")
# Patterns that begin with a letter are found fast, so a look-behind after it checks the text before.
_SECTION: Final = re.compile(r"[A-E](?<![\w.].)\.\d+(?![\w.]*\w)")
_SCENARIO: Final = re.compile(r"[A-E](?<![\w.#%].)\d\d[a-z]?(?!\w)")
_GUARD_OR_REMEDY: Final = re.compile(r"[GgFfRr](?:uard|ix|emed)[a-z]* ([GF]\d+)(?: (?:to|and) ([GF]\d+))?")
_STEPS: Final = re.compile(r"([A-E]\.\d+), steps? (\d+)(?: to (\d+))?")
_TEST: Final = re.compile(r"def test_((?:[A-EGRST]\d+[ab]?_(?:to_)?)+)")
# A page of the specification that is named without its folder, before a number.
_NO_FOLDER: Final = re.compile(
    r"(?:nameserver|broker|client|reset|races|scenarios|protocol|store|admin)\.md`{0,2} (?:[A-E]\.\d|\d+\.\d)"
)
_LINE_BREAK: Final = re.compile(r"\n\s*(?:# )?(?=\S)")


@dataclass(frozen=True)
class Specification:
    """The numbers that the pages define.

    Attributes:
        numbers: numbers by page: sections, and rows of tables that have a number.
        steps: how many numbered steps a section has.
    """

    numbers: dict[str, frozenset[str]]
    steps: dict[str, int]

    def page_of(self, number: str) -> str | None:
        """Return the page of a number with a letter; numbers without a letter stand on several pages."""
        return next((page for page, numbers in self.numbers.items() if number in numbers), None)


@cache
def specification() -> Specification:
    """Read the pages."""
    numbers: dict[str, frozenset[str]] = {}
    steps: dict[str, int] = {}
    for path in sorted(set(PAGES.glob("*.md")) - {PAGES / "README.md"}):
        text = path.read_text()
        headings = list(_HEADING.finditer(text))
        sections = {heading[1] for heading in headings}
        letters = {section[0] for section in sections if section[0].isalpha()}
        races = {heading[2] for heading in headings if heading[2]}
        numbers[path.name] = frozenset(sections | letters | races | set(_ROW.findall(text)))
        for number, heading in enumerate(headings):
            end = headings[number + 1].start() if number + 1 < len(headings) else len(text)
            steps[heading[1]] = max(map(int, _STEP.findall(text[heading.end() : end])), default=0)
    return Specification(numbers, steps)


def dangling(text: str) -> Iterator[str]:
    """Citations of ``text`` that lead nowhere, each with the reason."""
    known = specification()
    text = _LINE_BREAK.sub(" ", text)
    for match in _CITED_PAGE.finditer(text):
        yield from _dangling_on_page(match[1], re.findall(_ID, match[2] or ""))
    for match in _STEPS.finditer(text):
        last = int(match[3] or match[2])
        if last > known.steps.get(match[1], 0):
            yield f"{match[0]}: {match[1]} has {known.steps.get(match[1], 0)} steps"
    numbers = {*_SECTION.findall(text), *_SCENARIO.findall(text)}
    for match in _GUARD_OR_REMEDY.finditer(text):
        numbers |= {number for number in match.groups() if number}
    for match in _TEST.finditer(text):
        numbers |= set(_numbers_of_test(match[1]))
    for number in sorted(numbers):
        if known.page_of(number) is None and not (ROOT / "docs" / "race" / f"{number}.md").exists():
            yield f"{number}: on no page of docs/spec"
    for match in _NO_FOLDER.finditer(text):
        if not text.endswith("docs/spec/", 0, match.start()):
            yield f"{match[0]}: without docs/spec/"


def _dangling_on_page(page: str, numbers: list[str]) -> Iterator[str]:
    """The first number, and each without a letter, has to stand on the page that is named."""
    if not (PAGES / page).is_file():
        yield f"docs/spec/{page}: no such page"
        return
    known = specification().numbers.get(page, frozenset())
    for place, number in enumerate(numbers):
        if (place == 0 or number[0].isdigit()) and number not in known:
            yield f"{number}: not in docs/spec/{page}"


def _numbers_of_test(prefix: str) -> Iterator[str]:
    """``E05_E30_`` are scenarios, ``A2_`` is section A.2, ``T16_`` a trap, ``R9_`` a race."""
    for word in re.findall(r"[A-Z]\d+[ab]?", prefix):
        is_section = word[0] in "ABCDE" and len(word.rstrip("ab")) == 2
        yield f"{word[0]}.{word[1]}" if is_section else word
