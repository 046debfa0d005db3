"""The records of the log, byte for byte (docs/spec/store.md 3, 16.1)."""

from __future__ import annotations

import pytest

from rewindmq.broker.store import BatchEntry, PutStatus, StoredMessage
from rewindmq.protocol.message.record import crc_ok, decode_record, encode_record
from tests.broker.store.store_box import STORE_HOST, StoreBox

BORN_V4 = bytes((10, 0, 0, 7, 0, 0, 0xC3, 0x50))
BORN_V6 = bytes(range(16)) + (50_000).to_bytes(4, "big")


def test_golden_bytes_of_the_worked_example(box: StoreBox) -> None:
    store = box.open()
    properties = b"UNIQ_KEY\x01" + b"7" * 108
    assert len(properties) == 117
    result = store.put_message(StoredMessage("TopicA", 0, b"hello 0", properties))
    record = store.look_message(0)
    assert result.size == 221
    assert record is not None
    assert record[:12].hex().upper() == "000000DDDAA320A720E809F1"
    assert (box.root / "commitlog" / ("0" * 20)).read_bytes()[:221] == record


@pytest.mark.parametrize("born_host", [BORN_V4, BORN_V6])
@pytest.mark.parametrize("store_host", [STORE_HOST, BORN_V6])
def test_every_field_stands_where_the_protocol_puts_it(
    box: StoreBox, born_host: bytes, store_host: bytes
) -> None:
    store = box.open(store_host=store_host)
    box.put(store, body=b"before")
    message = StoredMessage(
        "%RETRY%G", 3, b"body", b"A\x01b", 7, -5, 0x301, 1_600_000_000_123, born_host, 2, 77
    )
    result = store.put_message(message)
    expected = encode_record(
        topic="%RETRY%G",
        stored_body=b"body",
        properties=b"A\x01b",
        queue_id=3,
        queue_offset=0,
        physical_offset=result.physical_offset,
        born_timestamp=1_600_000_000_123,
        born_host=born_host,
        store_timestamp=box.now,
        store_host=store_host,
        flag=-5,
        sys_flag=0x301,
        reconsume_times=2,
        prepared_transaction_offset=77,
    )
    assert store.look_message(result.physical_offset) == expected
    assert store.store_time("%RETRY%G", 3, 0) == box.now


def test_a_batch_is_consecutive_records_with_shared_properties_and_one_time(box: StoreBox) -> None:
    store = box.open()
    message = StoredMessage("T", 1, b"", b"CLUSTER\x01c", born_host=BORN_V4)
    entries = [
        BatchEntry(b"one", b"", 1, 10),
        BatchEntry(b"two", b"K\x01v", 2, 20),
        BatchEntry(b"three", b"K\x01v\x02", 3, 30),
    ]
    result = store.put_batch(message, entries)
    assert (result.status, result.queue_offset, result.message_count) == (PutStatus.PUT_OK, 0, 3)
    entries_stored = [
        store.entry(message.topic, message.queue_id, offset) or (-1, 0, 0) for offset in range(3)
    ]
    records = [decode_record(store.look_message(entry[0]) or b"") for entry in entries_stored]
    assert [record.stored_body for record in records] == [b"one", b"two", b"three"]
    assert [record.queue_offset for record in records] == [0, 1, 2]
    assert [record.flag for record in records] == [10, 20, 30]
    assert {record.store_timestamp for record in records} == {box.now}
    assert all(crc_ok(record) for record in records)
    assert [record.properties.get("CLUSTER") for record in records] == ["c", "c", "c"]
    assert records[2].properties["K"] == "v"
    assert result.physical_offset + result.size == store.max_commit_log_offset


def test_prepared_and_rollback_records_have_no_entry(box: StoreBox) -> None:
    store = box.open()
    for sys_flag in (0x4, 0xC):
        result = box.put(store, sys_flag=sys_flag)
        assert result.queue_offset == 0
    assert store.max_offset("T", 0) == 0
    assert box.put(store, sys_flag=0x8).queue_offset == 0
    assert store.max_offset("T", 0) == 1
    store.close()
    assert box.open().max_offset("T", 0) == 1


def test_store_timestamps_never_decrease(box: StoreBox) -> None:
    store = box.open()
    box.put(store, at=2_000)
    assert box.put(store, at=1_000).store_timestamp == 2_000
    assert box.put(store, at=2_001).store_timestamp == 2_001
    store.close()
    assert box.put(box.open(), at=5).store_timestamp == 2_001


@pytest.mark.parametrize(
    "message",
    [
        StoredMessage("x" * 128, 0, b""),
        StoredMessage("x" * 256, 0, b""),
        StoredMessage("\udcff", 0, b""),
        StoredMessage("a/b", 0, b""),
        StoredMessage("..", 0, b""),
        StoredMessage("", 0, b""),
        StoredMessage("T", -1, b""),
        StoredMessage("T", 0, b"", b"p" * 32_768),
        StoredMessage("T", 0, b"b" * 4_194_305),
        StoredMessage("T", 0, b"b" * 65_536),
        StoredMessage("T", 0, b"", born_host=b"\x7f"),
        StoredMessage("T", 0, b"", flag=2**31),
        StoredMessage("T", 0, b"", born_timestamp=2**63),
    ],
)
def test_a_message_over_a_limit_is_refused_and_leaves_no_trace(box: StoreBox, message: StoredMessage) -> None:
    store = box.open()
    assert store.put_message(message).status is PutStatus.MESSAGE_ILLEGAL
    assert store.max_commit_log_offset == 0
    assert store.max_offset(message.topic, message.queue_id) == 0
    box.put(store)
    assert store.get_message("T", 0, 0, 32, None).message_count == 1


def test_a_batch_over_a_limit_is_refused_whole(box: StoreBox) -> None:
    store = box.open()
    shared = StoredMessage("T", 0, b"", b"p" * 32_000)
    too_long = [BatchEntry(b"", b""), BatchEntry(b"", b"q" * 800)]
    assert store.put_batch(shared, too_long).status is PutStatus.MESSAGE_ILLEGAL
    assert store.put_batch(shared, []).status is PutStatus.MESSAGE_ILLEGAL
    big = [BatchEntry(b"x" * 40_000, b"")] * 2
    assert store.put_batch(StoredMessage("T", 0, b""), big).status is PutStatus.MESSAGE_ILLEGAL
    assert store.max_commit_log_offset == 0
