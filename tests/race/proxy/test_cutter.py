"""The stream is cut into frames without losing a byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.limits import MAX_FRAME_BYTES
from rewindmq.race.proxy.cutter import FrameCutter
from tests.race.proxy.venue import CODECS, commit
from tests.support.properties import few_and_all

commands = st.builds(
    lambda code, opaque, flag, fields, body: RemotingCommand(
        code, opaque=opaque, flag=flag, ext_fields=fields, body=body
    ),
    st.integers(0, 400),
    st.integers(0, 2**31 - 1),
    st.integers(0, 3),
    st.dictionaries(st.text("abc", min_size=1), st.text("xyz"), max_size=3),
    st.binary(max_size=64),
)
frames = st.builds(encode_frame, commands, st.sampled_from(CODECS))
# Bytes with the length of a frame, but without a header that any codec can read.
broken = st.binary(max_size=24).map(lambda data: len(data).to_bytes(4, "big") + data)


@pytest.mark.parametrize("examples", few_and_all(50, 200))
def test_the_pieces_joined_are_the_bytes_fed(examples: int) -> None:
    @settings(max_examples=examples)
    @given(parts=st.lists(frames | broken, max_size=8), tail=st.binary(max_size=16), data=st.data())
    def run(parts: list[bytes], tail: bytes, data: st.DataObject) -> None:
        check_pieces(parts, tail, data)

    run()


def check_pieces(parts: list[bytes], tail: bytes, data: st.DataObject) -> None:
    """Feed these frames and bytes in any pieces."""
    stream = b"".join(parts) + tail
    ends = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *ends], [*ends, len(stream)], strict=True)]
    cutter = FrameCutter()
    pieces = [piece for chunk in chunks for piece in cutter.feed(chunk)]
    assert b"".join(piece.data for piece in pieces) + cutter.rest() == stream
    whole = [piece.data for piece in pieces[: len(parts)]]
    assert whole == parts
    for piece in pieces[: len(parts)]:
        decoder = FrameDecoder()
        assert [command.opaque for command in decoder.feed(piece.data)] == (
            [] if piece.command is None else [piece.command.opaque]
        )


def test_after_an_impossible_length_every_chunk_is_passed_on_unchanged() -> None:
    cutter = FrameCutter()
    frame = encode_frame(commit(1), SerializeType.JSON)
    hello = b"\x16\x03\x01\x00\xf8" + bytes(10)
    assert [piece.command is None for piece in cutter.feed(frame + hello)] == [False, True]
    assert cutter.feed(b"x") == [(b"x", None)]
    assert cutter.feed(frame) == [(frame, None)]
    assert cutter.rest() == b""
    assert FrameCutter().feed((MAX_FRAME_BYTES - 4).to_bytes(4, "big")) == []
    assert len(FrameCutter().feed((MAX_FRAME_BYTES - 3).to_bytes(4, "big"))) == 1
