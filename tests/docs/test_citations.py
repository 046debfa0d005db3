"""Every citation of the specification leads to a page, a section, a scenario."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from rewindmq.race.scenario.catalogue import SCENARIOS
from tests.docs.specification import PAGES, ROOT, dangling, specification
from tests.scenarios.catalogue import REQUIRED

_FOLDERS: Final = (
    *("bench", "broker", "client", "cluster", "docs", "examples", "namesrv", "pipeline", "protocol", "race"),
    *("scripts", "tests", "tools"),
)
_SUFFIXES: Final = frozenset({"", ".py", ".md", ".sh", ".svg"})
# A table of figures that look like citations, and this test with its invented citations.
_LEFT_OUT: Final = ("docs/compatibility.md", "tests/docs/test_citations.py", "tests/docs/specification.py")


def _texts() -> Iterator[tuple[str, str]]:
    """Every file that people write: its path from the root, and its text."""
    paths = [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([*ROOT.glob("*.md"), *paths]):
        name = str(path.relative_to(ROOT))
        if path.suffix in _SUFFIXES and path.is_file() and name not in _LEFT_OUT:
            yield name, path.read_text()


def test_every_citation_leads_to_a_page_and_a_number_on_it() -> None:
    wrong = [f"{name}: {problem}" for name, text in _texts() for problem in dangling(text)]
    assert not wrong, "\n".join(wrong)


def test_there_are_citations() -> None:
    cited = sum(text.count("docs/spec/") for name, text in _texts() if name.endswith(".py"))
    assert cited > 300
    assert set(REQUIRED) <= specification().numbers["scenarios.md"]
    assert len(REQUIRED) > 100


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("docs/spec/nowhere.md B.4", "docs/spec/nowhere.md: no such page"),
        ("(docs/spec/broker.md B.99)", "B.99: not in docs/spec/broker.md"),
        ("(docs/spec/broker.md C.9)", "C.9: not in docs/spec/broker.md"),
        ("docs/spec/protocol.md 3.2, 5.77", "5.77: not in docs/spec/protocol.md"),
        ("docs/spec/protocol.md T26", "T26: not in docs/spec/protocol.md"),
        ("docs/spec/store.md\n    8.2, 8.31;", "8.31: not in docs/spec/store.md"),
        ("docs/spec/reset.md D.5, step 9", "D.5, step 9: D.5 has 6 steps"),
        ("see E.44", "E.44: on no page of docs/spec"),
        ("as in B23", "B23: on no page of docs/spec"),
        ("guards G1 to G9", "G9: on no page of docs/spec"),
        ("def test_A04_nothing() -> None:", "A04: on no page of docs/spec"),
        ("def test_A9_nothing() -> None:", "A.9: on no page of docs/spec"),
        ("def test_E05_S9_nothing() -> None:", "S9: on no page of docs/spec"),
        ("``store.md`` 5.5", "store.md`` 5.5: without docs/spec/"),
    ],
)
def test_a_citation_of_nothing_is_found(text: str, problem: str) -> None:
    assert problem in list(dangling(text))


@pytest.mark.parametrize(
    "text",
    [
        "docs/spec/protocol.md 3.2, 3.5 and 3.6; docs/spec/broker.md B.1 to B.3, B.16.",
        "docs/spec/reset.md D.5, steps 3 to 5, guards G1 to G8 of E.2",
        "docs/spec/races.md F12, scenario E28",
        "def test_E01_to_E04_B3_T25_R9_S7_they_are_there() -> None:",
    ],
)
def test_a_citation_that_leads_somewhere_is_not(text: str) -> None:
    assert list(dangling(text)) == []


def test_what_users_read_of_a_race_has_no_bare_number_of_a_section_or_guard() -> None:
    """Sections are named with their page, guards in words; remedies are options of the command."""
    for scenario in SCENARIOS.values():
        told = f"{scenario.title} {scenario.versions} {scenario.closed_by}"
        assert not re.search(r"\b(?:[A-E]\.\d|G\d)", told), scenario.id
        assert list(dangling(scenario.section)) == []
        assert scenario.section.startswith("docs/spec/"), scenario.id


def test_every_page_is_in_the_index() -> None:
    index = (PAGES / "README.md").read_text()
    assert set(specification().numbers) <= set(re.findall(r"\]\((\w+\.md)", index))


def test_a_number_with_a_letter_stands_on_one_page_alone() -> None:
    """So a citation without a page is unambiguous."""
    numbers = [number for page in specification().numbers.values() for number in page if number[0].isalpha()]
    assert [number for number, count in Counter(numbers).items() if count > 1] == []
