"""Writes a large store in seconds: numpy renumbers the encoder's records, and samples are checked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.record import (
    BLANK,
    BLANK_BYTES,
    BODY_OFFSET_V4,
    MAGIC_BLANK,
    PHYSICAL_OFFSET_AT,
    QUEUE_OFFSET_AT,
    STORE_TIMESTAMP_AT_V4,
    body_crc,
    encode_record,
)
from rewindmq.protocol.text import java_hash

BODY_BYTES: Final = 250
START_MS: Final = 1_700_000_000_000
TOPICS: Final = ("TopicA", "TopicB", "TopicC", "TopicD")
GROUP: Final = "BenchmarkGroup"
_QUEUES: Final = 4
_LANES: Final = len(TOPICS) * _QUEUES
_TAG: Final = "TagA"
_SEGMENT_BYTES: Final = 1 << 30
_CQ_FILE_BYTES: Final = 300_000 * 20
_CHUNK: Final = 100_000
_DIGITS: Final = 9
_BODY_CRC_AT: Final = 8
_BORN_TIMESTAMP_AT: Final = 40
_HOST: Final = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
_SAMPLES: Final = 50

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Longs = np.ndarray[Any, np.dtype[np.int64]]


class Filled(NamedTuple):
    """A written store.

    Attributes:
        messages: number of messages.
        keys: upper limit of the distinct keys; all messages of a key have the same topic and queue.
        record_bytes: size of every record.
    """

    root: Path
    messages: int
    keys: int
    record_bytes: int

    @property
    def log_bytes(self) -> int:
        """Size of all records together."""
        return self.messages * self.record_bytes


def write_store(root: Path, count: int, keys: int, seed: int = 1) -> Filled:
    """Write ``count`` messages, one each millisecond, to four topics of four queues; keys are uniform."""
    rng = np.random.default_rng(seed)
    lanes = [_template(lane) for lane in range(_LANES)]
    record_bytes = len(lanes[0])
    assert all(len(lane) == record_bytes for lane in lanes)
    templates = np.frombuffer(b"".join(lanes), np.uint8).reshape(_LANES, record_bytes)
    log = _Log(root / "commitlog", record_bytes)
    queues = _Queues(root / "consumequeue")
    for first in range(0, count, _CHUNK):
        number = np.arange(first, min(first + _CHUNK, count))
        key = rng.integers(0, keys, len(number))
        lane = key % _LANES
        position = log.positions(number)
        offset = queues.append(lane, position, record_bytes)
        records = templates[lane]
        _fill(records, lanes[0], rng, number, key, offset, position)
        _check_samples(records, rng, number, key, lane, offset, position)
        log.append(number, records)
    log.close()
    queues.close()
    _write_config(root, queues)
    return Filled(root, count, keys, record_bytes)


def key_of(number: int) -> str:
    """Return the text of a key."""
    return f"key-{number:0{_DIGITS}d}"


def topic_of(key: int) -> str:
    """Return the topic of a key's messages."""
    return TOPICS[key % _LANES // _QUEUES]


def _unique(number: int) -> str:
    return f"7F000001{number:024X}"


def _properties(number: int, key: int) -> bytes:
    text = format_properties({"KEYS": key_of(key), "UNIQ_KEY": _unique(number), "TAGS": _TAG, "WAIT": "true"})
    return text.encode()


def _encode(
    lane: int, number: int, key: int, offset: int, position: int, *, body: bytes = bytes(BODY_BYTES)
) -> bytes:
    return encode_record(
        topic=TOPICS[lane // _QUEUES],
        stored_body=body,
        properties=_properties(number, key),
        queue_id=lane % _QUEUES,
        queue_offset=offset,
        physical_offset=position,
        born_timestamp=START_MS + number,
        born_host=_HOST,
        store_timestamp=START_MS + number,
        store_host=_HOST,
    )


def _template(lane: int) -> bytes:
    return _encode(lane, 0, 0, 0, 0)


def _fill(
    records: Bytes,
    template: bytes,
    rng: np.random.Generator,
    number: Longs,
    key: Longs,
    offset: Longs,
    position: Longs,
) -> None:
    """Fill in the fields that differ between records."""
    body = slice(BODY_OFFSET_V4, BODY_OFFSET_V4 + BODY_BYTES)
    bodies = rng.integers(ord("a"), ord("a") + 16, (len(number), BODY_BYTES), np.uint8)
    records[:, body] = bodies
    text = bodies.tobytes()
    crcs = [body_crc(text[at : at + BODY_BYTES]) for at in range(0, len(text), BODY_BYTES)]
    _put(records, _BODY_CRC_AT, np.array(crcs, ">i4"))
    _put(records, QUEUE_OFFSET_AT, offset.astype(">i8"))
    _put(records, PHYSICAL_OFFSET_AT, position.astype(">i8"))
    for at in (_BORN_TIMESTAMP_AT, STORE_TIMESTAMP_AT_V4):
        _put(records, at, (START_MS + number).astype(">i8"))
    key_at = template.index(key_of(0).encode()) + len("key-")
    _put_digits(records, key_at, _DIGITS, key, 10)
    unique_at = template.index(_unique(0).encode())
    _put_digits(records, unique_at + len("7F000001"), 24, number, 16)


def _put(records: Bytes, at: int, values: np.ndarray[Any, Any]) -> None:
    size = values.dtype.itemsize
    records[:, at : at + size] = values.view(np.uint8).reshape(-1, size)


def _put_digits(records: Bytes, at: int, width: int, values: Longs, base: int) -> None:
    digits = np.frombuffer(b"0123456789ABCDEF", np.uint8)
    rest = values.copy()
    for place in range(at + width - 1, at - 1, -1):
        records[:, place] = digits[rest % base]
        rest //= base


def _check_samples(
    records: Bytes,
    rng: np.random.Generator,
    number: Longs,
    key: Longs,
    lane: Longs,
    offset: Longs,
    position: Longs,
) -> None:
    """Check samples of numpy's records against the encoder's."""
    for row in rng.integers(0, len(number), _SAMPLES):
        made = records[row].tobytes()
        body = made[BODY_OFFSET_V4 : BODY_OFFSET_V4 + BODY_BYTES]
        fields = [int(values[row]) for values in (lane, number, key, offset, position)]
        assert made == _encode(*fields, body=body)


class _Log:
    """Log segments of 1 GiB, the last one sparse, as the broker writes them."""

    def __init__(self, folder: Path, record_bytes: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._record_bytes = record_bytes
        self._per_segment = (_SEGMENT_BYTES - BLANK_BYTES) // record_bytes

    def positions(self, number: Longs) -> Longs:
        """Return the log positions of records."""
        segment, within = np.divmod(number, self._per_segment)
        positions: Longs = segment * _SEGMENT_BYTES + within * self._record_bytes
        return positions

    def append(self, number: Longs, records: Bytes) -> None:
        """Write records, to more than one segment if necessary."""
        for segment in np.unique(number // self._per_segment):
            mine = number // self._per_segment == segment
            path = self._folder / f"{segment * _SEGMENT_BYTES:020d}"
            with path.open("ab") as file:
                file.write(records[mine].tobytes())

    def close(self) -> None:
        """End full segments with a blank record, and extend all segments to their full size."""
        *full, last = sorted(self._folder.iterdir())
        for path in full:
            with path.open("ab") as file:
                rest = _SEGMENT_BYTES - file.tell()
                file.write(BLANK.pack(rest, MAGIC_BLANK))
        for path in (*full, last):
            os.truncate(path, _SEGMENT_BYTES)


class _Queues:
    """Consume queues of all lanes; a lane is one queue of one topic."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ends = np.zeros(_LANES, np.int64)

    def append(self, lane: Longs, position: Longs, size: int) -> Longs:
        """Write the entries of records, and return the records' queue offsets."""
        offset = np.empty_like(lane)
        for number in range(_LANES):
            (mine,) = np.nonzero(lane == number)
            begin = self.ends[number]
            offset[mine] = np.arange(begin, begin + len(mine))
            self.ends[number] += len(mine)
            entries = np.empty(len(mine), [("position", ">i8"), ("size", ">i4"), ("tags", ">i8")])
            entries["position"], entries["size"], entries["tags"] = position[mine], size, java_hash(_TAG)
            self._write(number, int(begin) * 20, entries.tobytes())
        return offset

    def _write(self, lane: int, at: int, data: bytes) -> None:
        folder = self._folder / TOPICS[lane // _QUEUES] / str(lane % _QUEUES)
        folder.mkdir(parents=True, exist_ok=True)
        while data:
            base = at - at % _CQ_FILE_BYTES
            piece = data[: base + _CQ_FILE_BYTES - at]
            with (folder / f"{base:020d}").open("ab") as file:
                file.write(piece)
            at += len(piece)
            data = data[len(piece) :]

    def close(self) -> None:
        """Extend every file to its full size."""
        for path in self._folder.glob("*/*/*"):
            os.truncate(path, _CQ_FILE_BYTES)


def _write_config(root: Path, queues: _Queues) -> None:
    config = root / "config"
    config.mkdir()
    topics = {
        topic: {
            "topicName": topic,
            "readQueueNums": _QUEUES,
            "writeQueueNums": _QUEUES,
            "perm": 6,
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": 0,
            "order": False,
        }
        for topic in TOPICS
    }
    version = {"counter": 1, "timestamp": START_MS}
    offsets: dict[str, dict[int, int]] = {}
    for lane, end in enumerate(queues.ends.tolist()):
        offsets.setdefault(f"{TOPICS[lane // _QUEUES]}@{GROUP}", {})[lane % _QUEUES] = end
    tables: dict[str, Any] = {
        "topics.json": {"dataVersion": version, "topicConfigTable": topics},
        "consumerOffset.json": {"offsetTable": offsets},
        "delayOffset.json": {"offsetTable": {}},
        "subscriptionGroup.json": {
            "dataVersion": version,
            "subscriptionGroupTable": {GROUP: {"groupName": GROUP}},
        },
    }
    for name, table in tables.items():
        (config / name).write_text(json.dumps(table))
