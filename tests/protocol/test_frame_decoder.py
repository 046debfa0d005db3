"""Frames (docs/spec/protocol.md 1.1): any chunking, truncation, oversize and garbage."""

import itertools
import struct
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.errors import FrameError
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.limits import MAX_FRAME_BYTES, MAX_HEADER_BYTES
from rewindmq.protocol.message_queue import MessageQueue


def frame(opaque: int, body: bytes, serialize_type: SerializeType = SerializeType.MSGPACK) -> bytes:
    return encode_frame(RemotingCommand(11, body=body, opaque=opaque, ext_fields={"k": "v"}), serialize_type)


def test_layout_of_a_frame() -> None:
    data = frame(1, b"body", SerializeType.JSON)
    length, word = struct.unpack_from(">II", data)
    assert length == len(data) - 4
    assert word >> 24 == SerializeType.JSON
    header = data[8 : 8 + (word & 0xFFFFFF)]
    assert msgspec.json.decode(header)["code"] == 11
    assert data[8 + len(header) :] == b"body"


SENT = st.lists(st.tuples(st.binary(max_size=60), st.sampled_from(SerializeType)), min_size=1, max_size=6)


@given(sent=SENT, cuts=st.lists(st.integers(0, 2000), max_size=20))
def test_any_chunking_gives_the_same_commands(
    sent: list[tuple[bytes, SerializeType]], cuts: list[int]
) -> None:
    stream = b"".join(frame(index, body, kind) for index, (body, kind) in enumerate(sent))
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    decoder = FrameDecoder()
    got = [command for start, end in itertools.pairwise(edges) for command in decoder.feed(stream[start:end])]
    assert [(command.opaque, command.body or b"", command.serialize_type) for command in got] == [
        (index, body, kind) for index, (body, kind) in enumerate(sent)
    ]
    assert decoder.failure is None
    assert decoder.buffered == 0


def test_one_byte_at_a_time() -> None:
    stream = frame(1, b"x" * 50) + frame(2, b"")
    decoder = FrameDecoder()
    got = [command for byte in stream for command in decoder.feed(bytes([byte]))]
    assert [command.opaque for command in got] == [1, 2]


@given(cuts=st.lists(st.integers(1, 200), max_size=3), more=st.integers(-3, 3))
def test_a_frame_can_be_had_before_the_rest_of_it_is_fed(cuts: list[int], more: int) -> None:
    whole = frame(1, b"x" * 50)
    edges = [0, *sorted(min(cut, len(whole) - 1) for cut in cuts)]
    decoder = FrameDecoder()
    for start, end in itertools.pairwise(edges):
        decoder.feed(whole[start:end])
    rest = (whole + b"abc")[edges[-1] : len(whole) + more]
    # Before the first eight bytes its length is unknown.
    is_known = edges[-1] >= 8
    assert decoder.completed_by(rest) == (whole if is_known and not more else None)
    (command,) = decoder.feed(whole[edges[-1] :])
    assert command.body == b"x" * 50


def test_a_large_frame_is_joined_only_once() -> None:
    for size, is_joined in ((60_000, True), (70_000, False)):
        whole = frame(1, bytes(size))
        decoder = FrameDecoder()
        decoder.feed(whole[:100])
        assert (decoder.completed_by(whole[100:]) is not None) is is_joined


def test_an_empty_body_and_an_absent_one_are_the_same() -> None:
    assert FrameDecoder().feed(frame(1, b""))[0].body is None


@given(cut=st.integers(1, 80))
def test_a_truncated_frame_is_waited_for(cut: int) -> None:
    data = frame(1, b"x" * 50)
    decoder = FrameDecoder()
    assert decoder.feed(data[:-cut] if cut < len(data) else b"") == []
    assert decoder.failure is None


@given(data=st.binary(max_size=400), chunk=st.integers(1, 64))
def test_garbage_never_raises(data: bytes, chunk: int) -> None:
    decoder = FrameDecoder()
    for start in range(0, len(data), chunk):
        for command in decoder.feed(data[start : start + chunk]):
            assert isinstance(command, RemotingCommand)
    assert decoder.failure is None or isinstance(decoder.failure, FrameError)


@given(
    header=st.binary(max_size=60), body=st.binary(max_size=20), kind=st.integers(0, 255)
)  # a true envelope around nonsense
def test_hostile_headers_never_raise(header: bytes, body: bytes, kind: int) -> None:
    data = struct.pack(">II", 4 + len(header) + len(body), kind << 24 | len(header)) + header + body
    decoder = FrameDecoder()
    commands = decoder.feed(data)
    assert (decoder.failure is None) == (len(commands) == 1)


@pytest.mark.parametrize(
    ("length", "word", "what"),
    [
        (MAX_FRAME_BYTES - 3, 2 << 24, "exceeds"),
        (0xFFFFFFFF, 0, "exceeds"),
        (4, 1, "header of 1 bytes"),
        (0, 0, "header of 0 bytes"),
        (MAX_HEADER_BYTES + 5, MAX_HEADER_BYTES + 1, "header of"),
        (100, 3 << 24, "unknown serialize type 3"),
        (0x47455420, 0x2F204854, "HTTP client"),  # "GET / HT"
        (0x474F5420, 0x2F204854, "exceeds"),
    ],
)
def test_a_bad_envelope_is_refused_before_its_body_is_awaited(length: int, word: int, what: str) -> None:
    decoder = FrameDecoder(max_header_bytes=MAX_HEADER_BYTES)
    assert decoder.feed(struct.pack(">II", length, word)) == []
    assert decoder.failure is not None
    assert what in str(decoder.failure)


@pytest.mark.parametrize(
    ("length", "word"), [(0xFFFFFFFF, 0), (100, 3 << 24), (100, 60)], ids=["length", "type", "header"]
)
def test_a_refused_frame_is_not_kept_in_memory(length: int, word: int) -> None:
    """The failure's traceback kept the bytes, in a cycle that only a full collection ends."""
    decoder = FrameDecoder()
    data = struct.pack(">II", length, word) + bytes(60_000)
    before = sys.getrefcount(data)
    decoder.feed(data)
    assert decoder.failure is not None
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize("length", [0, 1, 3, MAX_FRAME_BYTES - 3, 0xFFFFFFFF])
def test_an_impossible_length_is_refused_before_the_header_word_is_awaited(length: int) -> None:
    decoder = FrameDecoder()
    assert [command.opaque for command in decoder.feed(frame(1, b"a") + struct.pack(">I", length))] == [1]
    assert decoder.failure is not None
    assert FrameDecoder().feed(struct.pack(">I", 4)) == []


def test_commands_before_the_damage_are_kept_and_input_after_it_is_ignored() -> None:
    decoder = FrameDecoder()
    got = decoder.feed(frame(1, b"a") + frame(2, b"b") + struct.pack(">II", 100, 9 << 24) + frame(3, b"c"))
    assert [command.opaque for command in got] == [1, 2]
    assert decoder.failure is not None
    assert decoder.feed(frame(4, b"d")) == []
    assert decoder.buffered == 0


def test_the_largest_frame_passes_and_one_byte_more_does_not() -> None:
    room = MAX_FRAME_BYTES - len(frame(1, b""))
    data = frame(1, bytes(room))
    assert len(data) == MAX_FRAME_BYTES
    (command,) = FrameDecoder().feed(data)
    assert command.body == bytes(room)
    with pytest.raises(FrameError, match="exceeds the limit"):
        frame(1, bytes(room + 1))


@pytest.mark.parametrize("kind", SerializeType)
def test_a_header_over_the_limit_is_sent_and_read_in_a_response_only(kind: SerializeType) -> None:
    command = RemotingCommand(11, ext_fields={"a": "x" * MAX_HEADER_BYTES})
    with pytest.raises(FrameError, match="exceeds the limit"):
        encode_frame(command, kind)
    command.flag = FLAG_RESPONSE
    data = encode_frame(command, kind)
    (read,) = FrameDecoder().feed(data)
    assert read.ext == command.ext_fields
    server = FrameDecoder(max_header_bytes=MAX_HEADER_BYTES)
    assert server.feed(data) == []
    assert server.failure is not None


@pytest.mark.parametrize("kind", SerializeType)
def test_a_structured_body_is_written_in_the_serialization_type_of_the_frame(kind: SerializeType) -> None:
    body = ResetOffsetBody({MessageQueue("TopicA", "broker-a", 0): 100})
    command = FrameDecoder().feed(encode_frame(RemotingCommand(220, body=body), kind))[0]
    assert isinstance(command.body, bytes)
    assert (b"brokerName" in command.body) == (kind is not SerializeType.MSGPACK)
