"""Random records of every form the layout allows, and logs of them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from hypothesis import strategies as st

from rewindmq.protocol.message.record import BLANK, MAGIC_V2, encode_record
from rewindmq.protocol.message.sysflag import COMPRESSION_LZ4, COMPRESSION_ZLIB, COMPRESSION_ZSTD

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
MOMENTS = st.integers(0, 1 << 42)
# Far enough from the ends of 64 bits for a delay to be added.
FAR_MOMENTS = st.integers(-(1 << 60), 1 << 60)
# The hosts decide; the encoder sets the bits for them.
SYS_FLAGS = INT32.map(lambda value: value & ~0x30)
HOSTS = st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20))
NAMES = st.sampled_from(
    [
        b"KEYS",
        b"TAGS",
        b"UNIQ_KEY",
        b"DELAY",
        b"REAL_TOPIC",
        b"REAL_QID",
        b"a",
        b"KEY",
        b"",
        "ключ".encode(),
        b"\xff",
    ]
)
VALUES = st.one_of(
    st.sampled_from([b"", b"k", b"a b", b" a  b ", b"3", b"x\x01y", b"\xe2\x82", "标签".encode()]),
    st.binary(max_size=12),
)
PIECES = st.one_of(
    st.tuples(NAMES, VALUES).map(lambda pair: pair[0] + b"\x01" + pair[1]),
    st.binary(max_size=6),
    st.just(b""),
)
PROPERTIES = st.lists(PIECES, max_size=7).map(b"\x02".join)
TOPICS = st.one_of(
    st.sampled_from(["TopicA", "SCHEDULE_TOPIC_XXXX", "%RETRY%g"]), st.text(min_size=1, max_size=9)
)


def as_v2(record: bytes, topic: str) -> bytes:
    """The same record in the form of 5.x: two bytes for the topic's length. Hosts are found by length."""
    (total,) = struct.unpack_from(">i", record)
    (sys_flag,) = struct.unpack_from(">i", record, 36)
    body_at = 88 + 12 * bool(sys_flag & 0x10) + 12 * bool(sys_flag & 0x20)
    (body_length,) = struct.unpack_from(">i", record, body_at - 4)
    at = body_at + body_length
    head = struct.pack(">iI", total + 1, MAGIC_V2)
    return head + record[8:at] + struct.pack(">h", len(topic.encode())) + record[at + 1 :]


@st.composite
def record_makers(draw: st.DrawFn) -> RecordMaker:
    topic = draw(TOPICS)
    long_bodies = st.integers(0, 3_000).map(lambda size: b"\x01\x02b" * size)
    fields = {
        "topic": topic,
        "stored_body": draw(st.one_of(st.binary(max_size=40), long_bodies)),
        "properties": draw(PROPERTIES),
        "queue_id": draw(INT32),
        "queue_offset": draw(INT64),
        "born_timestamp": draw(st.one_of(INT64, MOMENTS)),
        "born_host": draw(HOSTS),
        "store_timestamp": draw(st.one_of(MOMENTS, FAR_MOMENTS)),
        "store_host": draw(HOSTS),
        "flag": draw(INT32),
        "sys_flag": draw(SYS_FLAGS),
        "reconsume_times": draw(INT32),
        "prepared_transaction_offset": draw(INT64),
    }
    return RecordMaker(fields, is_v2=draw(st.booleans()))


class RecordMaker:
    """A record without a position."""

    def __init__(self, fields: Mapping[str, object], *, is_v2: bool = False) -> None:
        self.is_v2 = is_v2
        self.fields = fields

    def at(self, position: int) -> bytes:
        record = encode_record(physical_offset=position, **self.fields)  # type: ignore[arg-type]
        return as_v2(record, str(self.fields["topic"])) if self.is_v2 else record


def plain(body: bytes = b"body", **fields: object) -> RecordMaker:
    """A record of which only the given fields matter."""
    host = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"
    known: dict[str, object] = {
        "topic": "T", "stored_body": body, "properties": b"", "queue_id": 0, "queue_offset": 0,
        "born_timestamp": 1, "born_host": host, "store_timestamp": 1_700_000_000_000, "store_host": host,
    }  # fmt: skip
    return RecordMaker({**known, **fields})


def write_log(root: Path, makers: list[RecordMaker], segment_bytes: int) -> list[tuple[int, bytes]]:
    """A store with nothing but a commit log of these records; gives position and bytes of each."""
    folder = root / "commitlog"
    folder.mkdir(parents=True)
    base, data, placed = 0, bytearray(), []
    for maker in makers:
        record = maker.at(base + len(data))
        if len(data) + len(record) + 8 > segment_bytes:
            data += BLANK.pack(segment_bytes - len(data), 0xCBD43194)
            (folder / f"{base:020d}").write_bytes(data.ljust(segment_bytes, b"\0"))
            base, data = base + segment_bytes, bytearray()
            record = maker.at(base)
        assert len(record) + 8 <= segment_bytes
        placed.append((base + len(data), record))
        data += record
    (folder / f"{base:020d}").write_bytes(data.ljust(segment_bytes, b"\0"))
    return placed


def stream_compressed(body: bytes, codec: str) -> bytes:
    """A body in one of pyarrow's formats of streams."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        out.write(body)
    return bytes(sink.getvalue())


def compressed(body: bytes) -> list[tuple[bytes, int]]:
    """A body in each of the producer's compressions, with the sysFlag that says so."""
    return [
        (zlib.compress(body), 1),
        (zlib.compress(body), COMPRESSION_ZLIB | 1),
        (stream_compressed(body, "lz4"), COMPRESSION_LZ4 | 1),
        (stream_compressed(body, "zstd"), COMPRESSION_ZSTD | 1),
    ]
