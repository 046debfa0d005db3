"""Limits on the bodies of requests: bytes and values (docs/limits.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from rewindmq.protocol.body.heartbeat import HeartbeatData
from rewindmq.protocol.body.lock import LockBatchRequestBody
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec import fastjson, json_header
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.codec.body_shape import repair_for
from rewindmq.protocol.codec.fastjson_scanner import scan
from rewindmq.protocol.codec.request_limits import (
    DEFAULT_REQUEST_LIMIT,
    MAX_REQUEST_VALUES,
    REQUEST_LIMITS,
    request_limit,
)
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import BodyError, FrameError
from rewindmq.protocol.limits import MAX_FRAME_BYTES
from tests.support.work import lines_run


def heartbeat(body: bytes, serialize_type: SerializeType = SerializeType.JSON) -> RemotingCommand:
    return RemotingCommand(RequestCode.HEART_BEAT, body=body, serialize_type=serialize_type)


def lines_to_refuse(decode: Callable[[], object]) -> int:
    """How many lines run until the body is refused."""

    def refuse() -> None:
        with contextlib.suppress(BodyError):
            decode()

    return lines_run(refuse)


def strict(values: int) -> bytes:
    """A heartbeat with so many brackets and commas."""
    return b'{"clientID":"c","unknown":[' + b",".join([b"0"] * (values - 2)) + b"]}"


def tolerant(values: int) -> bytes:
    """A heartbeat that takes the tolerant reader so many steps, or one less: it counts commas, too."""
    return b"{clientID:'c',unknown:[" + b",".join([b"0"] * ((values - 3) // 2)) + b"]}"


def packed(values: int) -> bytes:
    """A heartbeat with so many bytes that look like the first one of a value."""
    data: bytes = msgpack.packb({"clientID": "c", "unknown": [[]] * (values - 5)}, use_bin_type=True)
    return data


@pytest.mark.parametrize(
    ("make", "serialize_type"),
    [(strict, SerializeType.JSON), (tolerant, SerializeType.JSON), (packed, SerializeType.MSGPACK)],
)
def test_a_request_with_too_many_values_is_refused(
    make: Callable[[int], bytes], serialize_type: SerializeType
) -> None:
    at_the_limit = heartbeat(make(MAX_REQUEST_VALUES), serialize_type)
    assert decode_body(at_the_limit, HeartbeatData).client_id == "c"
    with pytest.raises(BodyError, match=f"more than {MAX_REQUEST_VALUES} values"):
        decode_body(heartbeat(make(MAX_REQUEST_VALUES + 1), serialize_type), HeartbeatData)


@pytest.mark.parametrize("body", [b"[" + b"[]," * 5_000_000 + b"[]]", b"[" + b"'\\n'," * 3_000_000 + b"]"])
def test_a_body_of_nothing_but_values_is_refused_before_it_is_decoded(body: bytes) -> None:
    assert lines_to_refuse(lambda: decode_body(heartbeat(body), HeartbeatData)) < 1_000


@pytest.mark.parametrize(
    "piece", ["[],", "'',", "'\\n',", "/**/1,", ",", "1 ,", "{a:1},", "{{}:1},", "'\\'',"]
)
def test_the_tolerant_reader_takes_time_in_proportion_to_its_steps(piece: str) -> None:
    once, twice = (lines_run(lambda: scan(f"[{piece * count}0]")) for count in (500, 1_000))  # noqa: B023
    assert twice < 2.1 * once
    with pytest.raises(BodyError, match="more than 300 values"):
        scan(f"[{piece * 500}0]", 300)


def test_a_long_text_of_escapes_counts() -> None:
    text = "'" + "\\n" * 10_000 + "'"
    assert scan(text, 10_001) == "\n" * 10_000
    with pytest.raises(BodyError, match="more than 10000 values"):
        scan(text, 10_000)


def test_a_header_for_the_tolerant_reader_is_bounded() -> None:
    assert json_header.decode_header(b"{code:34,unknown:[" + b"0," * 4_000 + b"]}").code == 34
    with pytest.raises(FrameError, match="more than 10000 values"):
        json_header.decode_header(b"{code:34,unknown:[" + b"0," * 10_000 + b"]}")


def test_responses_and_files_have_no_limit_of_values() -> None:
    body = fastjson.dumps({"offsetTable": {f"T@{number}": {0: 1} for number in range(20_000)}}).encode()
    response = RemotingCommand(
        RequestCode.HEART_BEAT, body=body, flag=FLAG_RESPONSE, serialize_type=SerializeType.JSON
    )
    assert len(decode_body(response, ConsumerOffsetSerializeWrapper).offset_table) == 20_000
    assert len(fastjson.loads(body)["offsetTable"]) == 20_000


@pytest.mark.parametrize("wrong", ["", {}, [], "{a:1}", 0])
def test_wrong_queues_end_the_decoding_at_the_first(wrong: Any) -> None:
    body = {"consumerGroup": "G", "clientId": "c", "mqSet": [wrong] * 5_000}
    repair = repair_for(LockBatchRequestBody)
    with pytest.raises(BodyError, match="mqSet"):
        repair(body)
    assert lines_to_refuse(lambda: repair(body)) < 1_000


def test_every_limit_leaves_room_for_its_request() -> None:
    for code, limit in REQUEST_LIMITS.items():
        assert DEFAULT_REQUEST_LIMIT.body_bytes < limit.body_bytes <= MAX_FRAME_BYTES, RequestCode(code)
    assert request_limit(RequestCode.UPDATE_BROKER_CONFIG) == DEFAULT_REQUEST_LIMIT
    # mqadmin and the clients of RocketMQ send a subscription in some 200 bytes, and a queue in some 60.
    assert request_limit(RequestCode.HEART_BEAT).body_bytes >= 1_000 * 200
    assert request_limit(RequestCode.LOCK_BATCH_MQ).body_bytes >= 5_000 * 60
