"""Text of peers in lines, tables, JSON and pages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.text import escape_controls, escape_json, escape_lines

# Everything that ends a line somewhere, moves a cursor, or reorders text.
HOSTILE = (
    *map(chr, [*range(0x09), *range(0x0A, 0x20), *range(0x7F, 0xA0)]),
    *"\u2028\u2029\u200b\u200e\u202a\u202d\u202e\u2066\ufeff\ud800\U000e0001",
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("broker-a", "broker-a"),
        ("名字 ü 🙂", "名字 ü 🙂"),
        ("a\nb", r"a\nb"),
        ("a\rb", r"a\rb"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("\x9b2J", r"\x9b2J"),
        ("user\u202ecod.exe", r"user\u202ecod.exe"),
        ("a\u2028b", r"a\u2028b"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
        ("\tindented", "\tindented"),
        (r"a\nb", r"a\nb"),
    ],
)
def test_a_character_that_does_not_print_becomes_an_escape(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


@pytest.mark.parametrize("character", HOSTILE, ids=ascii)
def test_no_hostile_character_is_shown(character: str) -> None:
    shown = escape_controls(f"a{character}b")
    assert shown.isprintable()
    assert shown.startswith("a\\")
    assert shown.endswith("b")


@given(st.text())
def test_an_escaped_text_is_one_line_and_stays_as_it_is(text: str) -> None:
    shown = escape_controls(text)
    assert shown.splitlines() == [shown] if shown else not text
    assert escape_controls(shown) == shown
    shown.encode()


@given(st.lists(st.text(), min_size=1))
def test_there_are_as_many_lines_as_items(lines: list[str]) -> None:
    assert len(escape_lines(lines).split("\n")) == len(lines)
    assert len(escape_lines([f"{line}." for line in lines]).splitlines()) == len(lines)


@pytest.mark.slow
@given(
    st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_escaped_json_is_the_same_value(value: object) -> None:
    shown = escape_json(json.dumps(value, indent=2, ensure_ascii=False))
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert json.loads(shown) == value
