"""The texts of a POP's response: round trips, RocketMQ's own, and texts that cannot be read."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.pop.offset_info import (
    OffsetInfoError,
    msg_offset_entry,
    offset_key,
    order_count_entry,
    parse_msg_offset_info,
    parse_order_count_info,
    parse_start_offset_info,
    start_offset_entry,
)

KINDS = st.sampled_from(("0", "1", "2"))
QUEUES = st.tuples(KINDS, st.integers(0, 1000))
OFFSETS = st.integers(0, 2**63 - 1)


@given(st.dictionaries(QUEUES, OFFSETS))
def test_start_offsets_are_the_same_after_a_round_trip(starts: dict[tuple[str, int], int]) -> None:
    text = ";".join(start_offset_entry(kind, queue, start) for (kind, queue), start in starts.items())
    assert parse_start_offset_info(text) == starts


@given(st.dictionaries(QUEUES, st.lists(OFFSETS, min_size=1, max_size=32)))
def test_message_offsets_are_the_same_after_a_round_trip(
    offsets: dict[tuple[str, int], list[int]],
) -> None:
    text = ";".join(msg_offset_entry(kind, queue, found) for (kind, queue), found in offsets.items())
    assert parse_msg_offset_info(text) == offsets


@given(st.dictionaries(QUEUES, st.integers(0, 99)))
def test_order_counts_are_the_same_after_a_round_trip(counts: dict[tuple[str, int], int]) -> None:
    text = ";".join(order_count_entry(kind, str(queue), count) for (kind, queue), count in counts.items())
    assert parse_order_count_info(text) == {
        (kind, str(queue)): count for (kind, queue), count in counts.items()
    }


def test_the_texts_are_those_of_rocketmq() -> None:
    assert start_offset_entry("0", 3, 17) == "0 3 17"
    assert msg_offset_entry("1", 0, [17, 19]) == "1 0 17,19"
    assert order_count_entry("0", offset_key(3, 17), 2) == "0 qo3%17 2"
    assert parse_order_count_info("0 3 1;0 qo3%17 2") == {("0", "3"): 1, ("0", "qo3%17"): 2}
    assert parse_start_offset_info(None) == {} == parse_msg_offset_info("")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0 1", "has 2 fields"),
        ("0 1 2;", "has 1 fields"),
        ("0 1 2;0 1 3", "named twice"),
        ("0 x 2", "'x' is no number"),
        ("0 1 99999999999999999999", "is no number"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_with_what_is_wrong(text: str, fault: str) -> None:
    with pytest.raises(OffsetInfoError, match=fault):
        parse_start_offset_info(text)


@given(st.text(st.sampled_from("0123456789 ;,-+x"), max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (parse_start_offset_info, parse_msg_offset_info, parse_order_count_info):
        with contextlib.suppress(OffsetInfoError):
            parse(text)
