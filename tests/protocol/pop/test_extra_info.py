"""Handles of popped messages: round trips, and texts that are none."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.pop.extra_info import (
    ExtraInfo,
    ExtraInfoError,
    build_extra_info,
    parse_extra_info,
)

INT64 = st.integers(-(2**63) + 1, 2**63 - 1)
INT32 = st.integers(-(2**31) + 1, 2**31 - 1)
WORD = st.text(st.characters(codec="utf-8", exclude_characters=" "), min_size=1, max_size=8)


@given(
    start=INT64,
    popped=INT64,
    invisible=INT64,
    revive=INT32,
    broker=WORD,
    queue=INT32,
    offset=INT64 | st.none(),
)
def test_a_built_handle_is_parsed_to_its_fields(
    start: int, popped: int, invisible: int, revive: int, broker: str, queue: int, offset: int | None
) -> None:
    handle = build_extra_info(start, popped, invisible, revive, "%RETRY%G_T", broker, queue, offset)
    info = parse_extra_info(handle)
    assert info == ExtraInfo(start, popped, invisible, revive, "1", broker, queue, offset)
    assert info.text() == handle


def test_the_handles_of_a_receipt_and_of_a_changed_invisible_time() -> None:
    # Seen at 5.5.1: docs/spec/pop.md 9.
    first = parse_extra_info("0 1795804804386 15000 4 0 broker-a 0 1 433706")
    assert first == ExtraInfo(0, 1795804804386, 15000, 4, "0", "broker-a", 0, 1, "433706")
    changed = "0 1795804804408 20000 4 0 broker-a 0 1 0 433706"
    assert parse_extra_info(changed).commit_log_offset == "0 433706"
    assert parse_extra_info(changed).text() == changed


def test_the_topic_type_says_in_which_topic_the_message_is() -> None:
    for kind, topic in (("0", "T"), ("1", "%RETRY%G_T"), ("2", "%RETRY%G+T"), ("7", "T")):
        assert parse_extra_info(f"0 1 2 3 {kind} b 0 0").real_topic("T", "G") == topic


@pytest.mark.parametrize(
    ("handle", "fault"),
    [
        ("", "getBrokerName fail, extraInfoStrs length 1"),
        ("0 1 2", "getBrokerName fail, extraInfoStrs length 3"),
        ("0 1 2 3 0     ", "getBrokerName fail, extraInfoStrs length 5"),
        ("x 1 2 3 0 b", 'For input string: "x"'),
        ("0 1 2 9999999999 0 b", 'For input string: "9999999999"'),
        ("9223372036854775808 1 2 3 0 b", 'For input string: "9223372036854775808"'),
        ("0 1_0 2 3 0 b", 'For input string: "1_0"'),
        ("0 ١ 2 3 0 b", 'For input string: "١"'),
        ("0 1 2 3 0 b q", 'For input string: "q"'),
        ("0 1 2 3 0 b 0 z", 'For input string: "z"'),
    ],
)
def test_a_handle_that_is_none_is_refused_with_what_is_wrong(handle: str, fault: str) -> None:
    with pytest.raises(ExtraInfoError, match="CODE: 1 ") as raised:
        parse_extra_info(handle)
    assert fault in raised.value.remark


@given(st.text(st.sampled_from("0123456789 -+_x\n"), max_size=40) | st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ExtraInfoError):
        parse_extra_info(text)
