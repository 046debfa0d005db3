"""The batch body of 320 (docs/spec/protocol.md 6.6)."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import decode_batch, encode_batch
from rewindmq.protocol.message.properties import parse_properties


def test_layout_of_one_entry() -> None:
    data = encode_batch([Message("T", b"abc", properties={"k": "v"}, flag=7)])
    properties = b"k\x01v\x02WAIT\x01true"
    assert data == (
        struct.pack(">iiiii", 22 + 3 + len(properties), 0, 0, 7, 3)
        + b"abc"
        + struct.pack(">h", len(properties))
        + properties
    )


TEXT = st.text(st.characters(codec="utf-8", min_codepoint=3), min_size=1, max_size=8)
MESSAGES = st.lists(
    st.builds(
        Message,
        topic=st.just("T"),
        body=st.binary(max_size=40),
        flag=st.integers(-(2**31), 2**31 - 1),
        properties=st.dictionaries(TEXT, TEXT, max_size=3),
    ),
    min_size=1,
    max_size=5,
)


@given(messages=MESSAGES)
def test_a_batch_comes_back(messages: list[Message]) -> None:
    decoded = decode_batch(encode_batch(messages))
    assert [(body, flag) for body, _, flag in decoded] == [(m.body, m.flag) for m in messages]
    assert [parse_properties(properties.decode()) for _, properties, _ in decoded] == [
        m.properties for m in messages
    ]


@given(messages=MESSAGES, cut=st.integers(1, 30))
def test_a_truncated_batch_is_illegal(messages: list[Message], cut: int) -> None:
    data = encode_batch(messages)
    # Without some whole entries it is a shorter batch; with a part of the last entry missing it is none.
    last = len(encode_batch(messages[-1:]))
    with pytest.raises(RequestError) as refusal:
        decode_batch(data[: -min(cut, last - 1)])
    assert refusal.value.code == 13


@given(data=st.binary(max_size=100))
def test_garbage_is_illegal(data: bytes) -> None:
    with pytest.raises(RequestError) as refusal:
        decode_batch(data)
    assert refusal.value.code == 13


def entry(size: int, body_length: int, body: bytes, properties_length: int, properties: bytes) -> bytes:
    return (
        struct.pack(">iiiii", size, 0, 0, 0, body_length)
        + body
        + struct.pack(">h", properties_length)
        + properties
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        entry(22, 1, b"", 0, b""),
        entry(23, 0, b"", 0, b""),
        entry(22, -1, b"", 0, b""),
        entry(22, -2, b"", 2, b""),
        entry(22, 0, b"", -1, b""),
        entry(0, 0, b"", 0, b""),
        entry(-22, 0, b"", 0, b""),
        entry(22, 2**31 - 1, b"", 0, b""),
        entry(22, 0, b"", 0, b"") + b"\0",
    ],
)
def test_lengths_that_do_not_add_up_are_illegal(data: bytes) -> None:
    with pytest.raises(RequestError, match="batch body") as refusal:
        decode_batch(data)
    assert refusal.value.code == 13


def test_properties_beyond_javas_int16_are_illegal() -> None:
    with pytest.raises(RequestError) as refusal:
        encode_batch([Message("T", b"", properties={"k": "v" * 32_767})])
    assert refusal.value.code == 13
