"""Retry topics of POP, and the bit sets of batches of acks."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.pop.bit_set import decode_bits, encode_bits, positions
from rewindmq.protocol.pop.topics import normal_topic, pop_retry_topic, real_topic, revive_topic, topic_type


def test_the_names_are_those_of_rocketmq() -> None:
    assert revive_topic("DefaultCluster") == "rmq_sys_REVIVE_LOG_DefaultCluster"
    assert pop_retry_topic("T", "G") == "%RETRY%G_T"
    assert pop_retry_topic("T", "G", v2=True) == "%RETRY%G+T"
    assert [topic_type(topic) for topic in ("T", "%RETRY%G_T", "%RETRY%G+T", "%RETRY%G", "a+b")] == list(
        "01210"
    )
    with pytest.raises(ValueError, match="getRetry fail"):
        real_topic("T", "G", "3")


NAME = st.text(st.sampled_from("aB0_-%|"), min_size=1, max_size=8).filter(
    lambda name: not name.startswith("%RETRY%")
)


@given(topic=NAME, group=NAME, kind=st.sampled_from("012"))
def test_a_retry_topic_belongs_to_its_topic(topic: str, group: str, kind: str) -> None:
    stored = real_topic(topic, group, kind)
    assert normal_topic(stored, group) == topic
    assert topic_type(stored) == kind


@given(st.sets(st.integers(0, 300)))
def test_a_bit_set_is_the_same_after_a_round_trip(bits: set[int]) -> None:
    assert positions(decode_bits(encode_bits(bits))) == sorted(bits)


def test_few_bits_far_apart_are_found() -> None:
    assert positions((1 << 65_535) | (1 << 40_000) | 1) == [0, 40_000, 65_535]
    assert positions(0) == []


def test_bit_sets_are_those_of_java() -> None:
    assert encode_bits([0, 9]) == "AQI="
    assert encode_bits([]) == ""
    # Java's decoder needs no padding.
    assert decode_bits("AQ") == 1


@given(st.text(max_size=12))
def test_any_text_is_a_bit_set_or_refused(text: str) -> None:
    with contextlib.suppress(BodyError):
        decode_bits(text)
