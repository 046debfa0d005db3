"""Records of the revive topic: fastjson's bytes, round trips, and records that are none."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.pop.records import (
    AckMsg,
    BatchAckMsg,
    PopCheckPoint,
    PopRecordError,
    decode_record,
)

INT64 = st.integers(-(2**62), 2**62)
INT32 = st.integers(-(2**31), 2**31 - 1)
NAME = st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1, max_size=8)
CHECK_POINTS = st.builds(
    PopCheckPoint,
    topic=NAME,
    consumer_group=NAME,
    queue_id=INT32,
    start_offset=INT64,
    pop_time=INT64,
    invisible_time=INT64,
    broker_name=NAME | st.none(),
    num=st.integers(-128, 127),
    offset_diffs=st.none() | st.lists(INT32, max_size=40),
    bit_map=INT32,
    revive_offset=INT64,
    re_put_times=st.none() | NAME,
    suspend=st.booleans(),
)
ACK_FIELDS = {
    "topic": NAME,
    "consumer_group": NAME,
    "queue_id": INT32,
    "ack_offset": INT64,
    "start_offset": INT64,
    "pop_time": INT64,
    "broker_name": NAME | st.none(),
}


@given(CHECK_POINTS)
def test_a_checkpoint_is_the_same_after_a_round_trip(point: PopCheckPoint) -> None:
    assert decode_record("ck", point.encode()) == point
    assert point.times_put_back >= 0


@given(st.builds(AckMsg, **ACK_FIELDS))
def test_an_ack_is_the_same_after_a_round_trip(ack: AckMsg) -> None:
    assert decode_record("ack", ack.encode()) == ack


@given(st.builds(BatchAckMsg, **ACK_FIELDS, ack_offsets=st.lists(INT64)))
def test_a_batch_of_acks_is_the_same_after_a_round_trip(batch: BatchAckMsg) -> None:
    assert decode_record("bAck", batch.encode()) == batch


def test_the_records_are_those_that_rocketmq_writes() -> None:
    """The texts come from 5.5.1's own classes and fastjson2 2.0.59."""
    point = PopCheckPoint(
        topic="T",
        consumer_group="G",
        queue_id=3,
        start_offset=10,
        pop_time=1795804804408,
        invisible_time=15000,
        broker_name="broker-a",
        num=2,
    )
    assert point.encode() == (
        b'{"bm":0,"bn":"broker-a","c":"G","it":15000,"n":2,"pt":1795804804408,"q":3,'
        b'"reviveTime":1795804819408,"ro":0,"so":10,"sp":false,"t":"T"}'
    )
    point.offset_diffs, point.re_put_times, point.suspend, point.revive_offset = [0, 2], "3", True, 77
    assert point.encode() == (
        b'{"bm":0,"bn":"broker-a","c":"G","d":[0,2],"it":15000,"n":2,"pt":1795804804408,"q":3,'
        b'"reviveTime":1795804819408,"ro":77,"rp":"3","so":10,"sp":true,"t":"T"}'
    )
    assert point.unique_id() == "T@3@10@G@1795804804408@broker-a@ck"
    single = AckMsg(
        ack_offset=12, consumer_group="G", topic="T", queue_id=3, pop_time=1795804804408, start_offset=10
    )
    assert single.encode() == b'{"ao":12,"c":"G","pt":1795804804408,"q":3,"so":10,"t":"T"}'
    batch = BatchAckMsg(
        ack_offset=-1,
        ack_offsets=[10, 5000000000],
        broker_name="broker-a",
        consumer_group="G",
        topic="T",
        queue_id=3,
        pop_time=1795804804408,
        start_offset=10,
    )
    assert batch.encode() == (
        b'{"ao":-1,"aol":[10,5000000000],"bn":"broker-a","c":"G","pt":1795804804408,"q":3,"so":10,"t":"T"}'
    )
    assert batch.unique_id() == "T@3@-1@G@1795804804408@broker-a@ack"


def test_the_messages_of_old_checkpoints_follow_one_another() -> None:
    old = PopCheckPoint(start_offset=10, num=3)
    assert [old.index_of(offset) for offset in (9, 10, 12, 13)] == [-1, 0, 2, -1]
    assert old.offsets == [10, 11, 12]
    new = PopCheckPoint(start_offset=10, num=2, offset_diffs=[1, 4])
    assert [new.index_of(offset) for offset in (9, 10, 11, 14)] == [-1, -1, 0, 1]
    assert new.offsets == [11, 14]


def test_old_acks_have_long_names() -> None:
    assert decode_record("ack", b'{"ackOffset":5,"consumerGroup":"G","topic":"T"}') == AckMsg(
        ack_offset=5, consumer_group="G", topic="T"
    )
    assert decode_record("bAck", b'{"ackOffsetList":[5]}') == BatchAckMsg(ack_offsets=[5])


def test_a_message_with_another_tag_is_no_record() -> None:
    assert decode_record("other", b"") is None
    assert decode_record(None, b"{}") is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no",
        b"[]",
        b'"x"',
        b'{"q":"a"}',
        b'{"so":9223372036854775808}',
        b'{"n":300}',
        b"\xff",
        b"[" * 5000,
    ],
)
def test_a_record_that_cannot_be_read_is_an_error(body: bytes) -> None:
    for tag in ("ck", "ack", "bAck"):
        if tag != "ck" and b'"n"' in body:
            continue
        with pytest.raises(PopRecordError, match=f"a record with tag {tag} cannot be read"):
            decode_record(tag, body)


@given(point=CHECK_POINTS, place=st.integers(0, 200), junk=st.binary(max_size=3))
def test_a_damaged_record_is_taken_or_an_error(point: PopCheckPoint, place: int, junk: bytes) -> None:
    body = bytearray(point.encode())
    body[place : place + 2] = junk
    with contextlib.suppress(PopRecordError):
        damaged = decode_record("ck", bytes(body))
        assert isinstance(damaged, PopCheckPoint)
        assert damaged.times_put_back >= 0
