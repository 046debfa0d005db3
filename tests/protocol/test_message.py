"""Messages and their ids, properties and hashes.

Specification: docs/spec/protocol.md 6.5 to 6.7, docs/spec/store.md 0.2.
"""

import zlib
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.errors import ClientError, RequestError
from rewindmq.protocol.limits import MAX_INFLATED_BODY_BYTES
from rewindmq.protocol.message import Message
from rewindmq.protocol.message import properties as names
from rewindmq.protocol.message.message import format_host, inflate
from rewindmq.protocol.message.message_id import offset_message_id, parse_offset_message_id
from rewindmq.protocol.message.properties import (
    find_property,
    format_properties,
    parse_properties,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.text import java_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("TopicA#key0", 641858178),
        ("TopicA#x", -892678841),
        ("标签", 857175),
        ("😀", 1772899),
        ("polygenelubricants", -2147483648),
    ],
)
def test_java_hash_vectors(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_offset_message_id_vector() -> None:
    host = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
    text = "7F00000100002A9F0000000000000297"
    assert offset_message_id(host, 663) == text
    assert parse_offset_message_id(text) == (host, 663)
    assert parse_offset_message_id(text.lower()) == (host, 663)


@given(
    address=st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16),
    port=st.integers(0, 65_535),
    offset=st.integers(0, 2**63 - 1),
)
def test_offset_message_ids_come_back(address: bytes, port: int, offset: int) -> None:
    host = address + port.to_bytes(4)
    text = offset_message_id(host, offset)
    assert len(text) in (32, 56)
    assert parse_offset_message_id(text) == (host, offset)


@pytest.mark.parametrize("text", ["", "zz", "7F" * 15, "7F" * 17, "7F 00" * 8, "7F" * 28 + " ", "标" * 32])
def test_what_is_no_offset_message_id_is_refused(text: str) -> None:
    with pytest.raises(RequestError) as refusal:
        parse_offset_message_id(text)
    assert refusal.value.code == 1


# A properties text can hold names and values that are not empty and have no separators.
PLAIN = st.text(st.characters(codec="utf-8", min_codepoint=3), min_size=1, max_size=12)
PROPERTIES = st.dictionaries(PLAIN, PLAIN, max_size=8)


@given(properties=PROPERTIES)
def test_properties_come_back(properties: dict[str, str]) -> None:
    text = format_properties(properties)
    assert parse_properties(text) == properties
    assert parse_properties(text + "\x02") == properties


@given(text=st.text(st.sampled_from("AB\x01\x02"), max_size=30), name=st.sampled_from(["A", "B", "AB"]))
def test_one_property_is_found_as_parsing_all_would_find_it(text: str, name: str) -> None:
    assert find_property(text, name) == parse_properties(text).get(name)


def test_of_duplicate_properties_the_last_wins() -> None:
    assert parse_properties("A\x011\x02B\x012\x02A\x013\x02") == {"A": "3", "B": "2"}


@pytest.mark.parametrize("bad", [{"a\x01": "b"}, {"a": "b\x02"}])
def test_a_separator_inside_a_property_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(RequestError) as refusal:
        format_properties(bad)
    assert refusal.value.code == 13


def test_a_message_to_send_carries_its_properties() -> None:
    message = Message("T", b"x", "TagA", "k1 k2", properties={"color": "red"}, delay_level=3)
    assert message.properties == {
        "color": "red",
        names.TAGS: "TagA",
        names.KEYS: "k1 k2",
        names.DELAY: "3",
        names.WAIT: "true",
    }
    assert (message.tags, message.keys, message.unique_key) == ("TagA", "k1 k2", None)
    assert Message("T", b"", wait_store_msg_ok=False).properties == {names.WAIT: "false"}


@pytest.mark.parametrize(
    ("keys", "stored"),
    [
        ("a b", "a b"),
        (["a", "b"], "a b"),
        (("a",), "a"),
        ({"a": 1}.keys(), "a"),
        ([], None),
        ("", None),
        (None, None),
    ],
)
def test_keys_are_one_text_or_several_joined_with_a_space(keys: Any, stored: str | None) -> None:
    """As RocketMQ's Message#setKeys(Collection) joins them."""
    assert Message("T", b"x", keys=keys).keys == stored


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"topic": 5}, "topic must be str, not int"),
        ({"topic": None}, "topic must be str, not NoneType"),
        ({"body": "text"}, r"body must be bytes, not str: pass text\.encode\(\)"),
        ({"body": None}, "body must be bytes, not NoneType"),
        ({"body": [1, 2]}, "body must be bytes, not list"),
        ({"tags": 5}, "tags must be str or None, not int"),
        ({"tags": 0}, "tags must be str or None, not int"),
        ({"tags": ["a"]}, "tags must be str or None, not list"),
        ({"keys": 5}, "keys must be str, several of them, or None, not int"),
        ({"keys": b"k"}, "keys must be str, several of them, or None, not bytes"),
        ({"keys": {"k": "v"}}, "keys must be str, several of them, or None, not dict"),
        ({"keys": ["a", 5]}, "each of keys must be str, not int"),
        ({"keys": ["a", None]}, "each of keys must be str, not NoneType"),
        ({"flag": "1"}, "flag must be an int32, not '1'"),
        ({"flag": 1 << 31}, "flag must be an int32, not 2147483648"),
        ({"properties": {"color": None}}, "property 'color' must be str, not NoneType: leave it out"),
        ({"properties": {"color": 5}}, "property 'color' must be str, not int"),
        ({"properties": {5: "red"}}, "names of properties must be str, not int"),
        ({"properties": ["color"]}, "properties must be a mapping of str to str, not list"),
        ({"delay_level": "3"}, "delay_level must be int, not str"),
    ],
)
def test_what_a_message_cannot_carry_is_refused_where_it_is_made(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ClientError, match=f"^{words}$"):
        Message(**{"topic": "T", "body": b"x", **arguments})


class Color(str, Enum):  # noqa: UP042 - what many applications still have
    RED = "red"


def test_what_is_almost_bytes_or_str_is_stored_as_such() -> None:
    for body in (bytearray(b"x"), memoryview(b"x")):
        made = Message("T", body)
        assert type(made.body) is bytes
        assert made.body == b"x"
    made = Message("T", b"x", tags=Color.RED, keys=[Color.RED, "b"], properties={"color": Color.RED})
    assert format_properties(made.properties) == (
        "color\x01red\x02TAGS\x01red\x02KEYS\x01red b\x02WAIT\x01true"
    )


@pytest.mark.parametrize(("sys_flag", "what"), [(0x101, "LZ4"), (0x201, "ZSTD"), (0x301, "does not inflate")])
def test_bodies_that_cannot_be_read_say_so(sys_flag: int, what: str) -> None:
    with pytest.raises(ClientError, match=what):
        inflate(b"not compressed", sys_flag)


def test_a_body_that_inflates_without_end_is_refused() -> None:
    bomb = zlib.compress(bytes(MAX_INFLATED_BODY_BYTES + 1))
    assert len(bomb) < 100_000
    with pytest.raises(ClientError, match="inflates to more than"):
        inflate(bomb, 0x301)


def test_a_compressed_body_that_is_cut_short_is_refused() -> None:
    with pytest.raises(ClientError, match="cut short"):
        inflate(zlib.compress(b"hello")[:-2], 1)


def test_hosts_as_text() -> None:
    assert format_host(bytes([10, 0, 0, 1, 0, 0, 42, 159])) == "10.0.0.1:10911"
    assert format_host(bytes(15) + b"\x01" + bytes([0, 0, 42, 159])) == "[::1]:10911"


def test_queues_sort_by_topic_broker_and_id_as_rebalance_needs() -> None:
    queues = [MessageQueue("T", "b", 10), MessageQueue("T", "b", 9), MessageQueue("T", "a", 11)]
    assert [(queue.broker_name, queue.queue_id) for queue in sorted(queues)] == [
        ("a", 11),
        ("b", 9),
        ("b", 10),
    ]
