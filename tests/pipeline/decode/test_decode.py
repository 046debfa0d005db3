"""The vectorised decoder against ``protocol.message.record.decode_record``: every record, every column."""

from __future__ import annotations

import itertools
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.store.config import DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels, TagsCoder
from rewindmq.pipeline.decode.bodies import inflated_runs
from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.message_columns import FIRST_MOMENT_MS, LAST_MOMENT_MS
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.schema import MESSAGES
from rewindmq.pipeline.snapshot.snapshot import take_snapshot
from rewindmq.protocol.limits import MAX_INFLATED_BODY_BYTES
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.record import crc_ok, decode_record
from rewindmq.protocol.message.sysflag import COMPRESSION_ZSTD
from tests.pipeline.direct import rows
from tests.pipeline.records import (
    RecordMaker,
    compressed,
    plain,
    record_makers,
    stream_compressed,
    write_log,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STATES = ("none", "prepared", "commit", "rollback")


def moment(milliseconds: int) -> datetime:
    shown = max(min(milliseconds, LAST_MOMENT_MS), FIRST_MOMENT_MS)
    return EPOCH + timedelta(milliseconds=shown)


def expected(position: int, record: bytes, segment: int) -> dict[str, Any]:
    """Every column of a record, by the decoder that everything else uses."""
    message = decode_record(record)
    properties = message.properties
    coder = TagsCoder(DelayLevels(DEFAULT_DELAY_LEVELS))
    text = message._properties_text
    return {
        "store": "store",
        "segment": segment,
        "physicalOffset": position,
        "storeSize": len(record),
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "keys": [key for key in (message.keys or "").split(" ") if key],
        "tag": message.tags,
        "uniqueKey": properties.get("UNIQ_KEY"),
        "bornTimestamp": moment(message.born_timestamp),
        "storeTimestamp": moment(message.store_timestamp),
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "transactionState": STATES[message.sys_flag >> 2 & 3],
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bodyCRC": message.body_crc,
        "crcOk": crc_ok(message),
        "properties": list(properties.items()),
        "body": message.stored_body,
        "keysText": message.keys,
        "bodySize": len(message.stored_body),
        "tagsCode": coder.tags_code(message.topic, text, message.store_timestamp),
        "delay": properties.get("DELAY"),
        "realTopic": properties.get("REAL_TOPIC"),
        "realQueueId": properties.get("REAL_QID"),
        "storeTimestampMs": message.store_timestamp,
        "bornTimestampMs": message.born_timestamp,
        "version": 2 if record[7] == 0xAB else 1,
    }


@pytest.mark.slow
def test_every_column_is_what_the_decoder_of_records_reads(full: bool) -> None:
    @settings(max_examples=200 if full else 25, deadline=None, derandomize=True)
    @given(st.lists(record_makers(), min_size=1, max_size=12), st.integers(1, 5))
    def check(makers: list[RecordMaker], batch: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "store"
            placed = write_log(store, makers, 16_384)
            found = rows(store, columns=list(MESSAGES), batchRecords=str(batch))
        wanted = [expected(position, record, position // 16_384 * 16_384) for position, record in placed]
        for row in (*found, *wanted):
            row["properties"] = sorted(row["properties"])
        assert found == wanted

    check()


@pytest.mark.slow
def test_wherever_a_segment_is_split_its_records_are_the_same(full: bool) -> None:
    @settings(max_examples=200 if full else 25, deadline=None, derandomize=True)
    @given(
        st.lists(record_makers(), min_size=1, max_size=12),
        st.lists(st.integers(0, 16_384), max_size=6),
        st.integers(1, 5_000),
    )
    def check(makers: list[RecordMaker], cuts: list[int], chunk: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            placed = write_log(Path(folder), makers, 1 << 17)
            snapshot = take_snapshot(folder)
            (segment,) = snapshot.segments
            damages: list[Damage] = []
            reader = SegmentReader(snapshot.files, segment, damages.append, chunk_bytes=chunk)
            bounds = sorted({0, segment.end, *(cut for cut in cuts if cut < segment.end)})
            found = [
                position
                for start, stop in itertools.pairwise(bounds)
                for block in reader.blocks(start, stop)
                for position in (block.base + block.at).tolist()
            ]
        assert found == [position for position, _ in placed]
        assert not damages

    check()


def test_a_record_larger_than_a_chunk_is_read(tmp_path: Path) -> None:
    body = bytes(range(256)) * 40_000
    placed = write_log(tmp_path / "store", [plain(), plain(body), plain()], 1 << 24)
    found = rows(tmp_path / "store", columns=["physicalOffset", "body", "crcOk"], splitBytes="1000000")
    assert [row["physicalOffset"] for row in found] == [position for position, _ in placed]
    assert found[1]["body"] == body
    assert all(row["crcOk"] for row in found)


def test_bodies_are_decompressed_when_asked_for(tmp_path: Path) -> None:
    body = b"so much of the same " * 50
    forms = [*compressed(body), (body, 0)]
    makers = [plain(stored, sys_flag=flag) for stored, flag in forms]
    broken = [plain(stored[:-9] if flag else stored, sys_flag=flag or 1) for stored, flag in forms]
    write_log(tmp_path / "store", [*makers, *broken], 65_536)
    stored = rows(tmp_path / "store", columns=["body"])
    sent = rows(tmp_path / "store", columns=["body"], decompress="true")
    assert [row["body"] for row in stored[: len(forms)]] == [form for form, _ in forms]
    assert [row["body"] for row in sent[: len(forms)]] == [body] * len(forms)
    assert [row["body"] for row in sent[len(forms) :]] == [None] * len(forms)


def test_a_broken_body_is_null_and_not_what_it_inflates_to_at_first(tmp_path: Path) -> None:
    bomb = stream_compressed(bytes(MAX_INFLATED_BODY_BYTES + 1), "zstd")
    write_log(tmp_path / "store", [plain(bomb, sys_flag=COMPRESSION_ZSTD | 1)], 65_536)
    assert rows(tmp_path / "store", columns=["body"], decompress="true") == [{"body": None}]


def test_bodies_that_become_large_are_given_in_small_batches() -> None:
    stored, flag = compressed(bytes(3 << 20))[0]
    runs = inflated_runs(pa.array([stored] * 25 + [b"x"], pa.binary()), np.array([flag] * 25 + [0], np.int32))
    sizes = [(start, stop, [len(body) for body in bodies.to_pylist()]) for start, stop, bodies in runs]
    assert sizes == [(0, 10, [3 << 20] * 10), (10, 20, [3 << 20] * 10), (20, 26, [*[3 << 20] * 5, 1])]


def test_delivery_times_follow_the_levels_of_the_broker(tmp_path: Path) -> None:
    properties = format_properties({"DELAY": "2"}).encode()
    maker = plain(topic="SCHEDULE_TOPIC_XXXX", properties=properties, store_timestamp=1_000)
    write_log(tmp_path / "store", [maker], 65_536)
    assert rows(tmp_path / "store", columns=["tagsCode"]) == [{"tagsCode": 6_000}]
    assert rows(tmp_path / "store", columns=["tagsCode"], delayLevels="1s 2m") == [{"tagsCode": 121_000}]
