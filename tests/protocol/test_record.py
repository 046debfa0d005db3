"""The message record against the reference's vectors and against damage.

Specification: docs/spec/store.md 3, docs/spec/protocol.md 6.1.
"""

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import (
    FIXED_V4,
    MAGIC_V1,
    MAGIC_V2,
    OVERHEAD_V4,
    RecordError,
    body_crc,
    crc_ok,
    decode_record,
    decode_records,
    decode_stream,
    encode_record,
)

V4_HOST = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
V6_HOST = bytes(15) + b"\x01" + (10911).to_bytes(4, "big")


def record(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "topic": "TopicA", "stored_body": b"hello 0", "properties": b"TAGS\x01TagA", "queue_id": 3,
        "queue_offset": 5, "physical_offset": 663, "born_timestamp": 1, "born_host": V4_HOST,
        "store_timestamp": 2, "store_host": V4_HOST, "flag": 9, "reconsume_times": 1,
        "prepared_transaction_offset": 4,
    }  # fmt: skip
    return encode_record(**(fields | changes))


def test_store_3_1_worked_example() -> None:
    data = record(properties=b"K\x01" + b"v" * 115)
    assert len(data) == 221
    assert data[:12] == bytes.fromhex("000000DD DAA320A7 20E809F1")


@pytest.mark.parametrize(
    ("body", "crc"), [(b"hello 0", 552077809), (b"hello 3", 971069515), (b"hello", 0x3610A686)]
)
def test_crc_vectors(body: bytes, crc: int) -> None:
    assert body_crc(body) == crc


def test_every_field_comes_back() -> None:
    message = decode_record(record(), broker_name="broker-a")
    assert message.topic == "TopicA"
    assert message.body == b"hello 0"
    assert message.properties == {"TAGS": "TagA"}
    assert message.tags == "TagA"
    assert message.queue_id == 3
    assert message.queue_offset == 5
    assert message.commit_log_offset == 663
    assert message.born_timestamp == 1
    assert message.store_timestamp == 2
    assert message.flag == 9
    assert message.reconsume_times == 1
    assert message.prepared_transaction_offset == 4
    assert message.sys_flag == 0
    assert message.store_size == len(record())
    assert message.body_crc == 552077809
    assert message.born_host == message.store_host == "127.0.0.1:10911"
    assert message.message_queue == ("TopicA", "broker-a", 3)
    assert crc_ok(message)


def test_a_message_counted_as_delivered_before_is_otherwise_the_same() -> None:
    message = decode_record(record(), broker_name="broker-a")
    again = message.with_reconsume_times(5)
    assert (again.reconsume_times, message.reconsume_times) == (5, 1)
    assert (again.body, again.properties, again.topic) == (message.body, message.properties, message.topic)
    assert again.message_queue == message.message_queue
    assert again.prepared_transaction_offset == message.prepared_transaction_offset
    assert again.offset_message_id == message.offset_message_id


def test_store_3_7_offset_message_id() -> None:
    message = decode_record(record())
    assert message.offset_message_id == "7F00000100002A9F0000000000000297"
    assert message.msg_id == message.offset_message_id
    assert decode_record(record(properties=b"UNIQ_KEY\x01abc\x02")).msg_id == "abc"


HOSTS = st.sampled_from([V4_HOST, V6_HOST])


@given(
    body=st.binary(max_size=300),
    properties=st.binary(max_size=100),
    topic=st.text(st.characters(codec="ascii"), max_size=127),
    born=HOSTS,
    store=HOSTS,
    numbers=st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 2, *[st.integers(-(2**63), 2**63 - 1)] * 2),
    before=st.binary(max_size=9),
    after=st.binary(max_size=9),
)
def test_a_record_comes_back_from_any_position(
    body: bytes,
    properties: bytes,
    topic: str,
    born: bytes,
    store: bytes,
    numbers: tuple[int, int, int, int],
    before: bytes,
    after: bytes,
) -> None:
    queue_id, flag, queue_offset, physical_offset = numbers
    data = record(
        topic=topic, stored_body=body, properties=properties, born_host=born, store_host=store,
        queue_id=queue_id, flag=flag, queue_offset=queue_offset, physical_offset=physical_offset,
    )  # fmt: skip
    assert len(data) == OVERHEAD_V4 + 12 * [born, store].count(V6_HOST) + sum(
        map(len, (body, topic, properties))
    )
    for buffer in (before + data + after, memoryview(before + data + after)):
        message = decode_record(buffer, len(before))
        assert (message.stored_body, message.topic, message.store_size) == (body, topic, len(data))
        assert (message.queue_id, message.flag) == (queue_id, flag)
        assert (message.queue_offset, message.commit_log_offset) == (queue_offset, physical_offset)
        assert message.born_host.endswith(":10911")
        assert message.store_host.startswith("[::1]" if store is V6_HOST else "127.0.0.1")
        assert (message.reconsume_times, message.prepared_transaction_offset) == (1, 4)
        assert (message.sys_flag & 0x10 != 0, message.sys_flag & 0x20 != 0) == (
            born is V6_HOST,
            store is V6_HOST,
        )


def test_a_record_of_5x_with_a_two_byte_topic_length_is_read() -> None:
    v1 = record(topic="T" * 100)
    at = 88 + len(b"hello 0")
    data = bytearray(v1[:at] + b"\0" + v1[at:])
    struct.pack_into(">iI", data, 0, len(data), MAGIC_V2)
    assert decode_record(bytes(data)).topic == "T" * 100


def test_a_stream_stops_at_the_first_record_that_does_not_parse() -> None:
    one, two = record(queue_offset=1), record(queue_offset=2)
    broken = bytearray(record(queue_offset=3))
    broken[4] ^= 0xFF
    messages = decode_records(one + two + bytes(broken) + one, "broker-a")
    assert [message.queue_offset for message in messages] == [1, 2]
    assert all(message.broker_name == "broker-a" for message in messages)
    assert len(decode_records(one + two[:-1])) == 1
    assert decode_records(b"") == []


def test_a_stream_that_stops_early_says_where_and_why() -> None:
    one, two = record(queue_offset=1), record(queue_offset=2)
    assert decode_stream(one + two)[1] is None
    assert decode_stream(b"")[1] is None
    messages, damage = decode_stream(one + two[:20])
    assert [message.queue_offset for message in messages] == [1]
    assert str(damage) == f"record at {len(one)} is cut short"


@given(cut=st.integers(0, 119))
def test_a_record_cut_short_is_a_record_error(cut: int) -> None:
    data = record()
    with pytest.raises(RecordError):
        decode_record(data[: min(cut, len(data) - 1)])
    with pytest.raises(RecordError):
        decode_record(memoryview(data)[: min(cut, len(data) - 1)])


@given(at=st.integers(0, 130), bits=st.integers(1, 255))
def test_a_damaged_record_is_refused_or_still_a_message(at: int, bits: int) -> None:
    data = bytearray(record())
    data[at % len(data)] ^= bits
    try:
        message = decode_record(bytes(data))
    except RecordError:
        return
    assert isinstance(message, MessageExt)
    assert message.store_size == len(data)


@given(data=st.binary(max_size=300))
def test_garbage_is_no_record(data: bytes) -> None:
    assert decode_records(data) == []


@pytest.mark.parametrize("body_length", [-1, -89, -(2**31), 2**31 - 1])
def test_a_hostile_body_length_is_a_record_error(body_length: int) -> None:
    data = bytearray(record())
    struct.pack_into(">i", data, FIXED_V4.size - 4, body_length)
    for buffer in (bytes(data), memoryview(data)):
        with pytest.raises(RecordError):
            decode_record(buffer)


def test_a_hostile_total_size_does_not_loop() -> None:
    data = bytearray(record())
    for total in (0, -1, 2**31 - 1):
        struct.pack_into(">i", data, 0, total)
        assert decode_records(bytes(data)) == []


def test_T17_lengths_beyond_javas_signed_bytes_are_not_written() -> None:
    """A V1 record has one signed byte for the topic's length; a V2 record of 5.x has two."""
    assert struct.unpack_from(">I", record(topic="T" * 127), 4)[0] == MAGIC_V1
    long = record(topic="T" * 255)
    assert struct.unpack_from(">I", long, 4)[0] == MAGIC_V2
    assert decode_record(long).topic == "T" * 255
    with pytest.raises(RecordError):
        record(topic="T" * 256)
    with pytest.raises(RecordError):
        record(properties=bytes(32_768))
    assert decode_record(record(topic="T" * 127, properties=b"a\x01" + b"b" * 32_765)).topic == "T" * 127


def test_the_magic_is_written_as_the_reference_says() -> None:
    assert struct.unpack_from(">i", record(), 4)[0] == -626843481
    assert MAGIC_V1 == 0xDAA320A7


@pytest.mark.parametrize("sys_flag", [0x1, 0x301])
def test_T16_zlib_bodies_of_old_and_new_senders_are_inflated(sys_flag: int) -> None:
    body = b"x" * 5000
    message = decode_record(record(stored_body=zlib.compress(body, 5), sys_flag=sys_flag))
    assert message.body == body
    assert message.stored_body != body
    assert crc_ok(message)
