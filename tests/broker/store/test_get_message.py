"""Reads by offset: status, next offset, limits (docs/spec/store.md 4.5, docs/spec/broker.md B.5)."""

from __future__ import annotations

import msgspec
import pytest

from rewindmq.broker.store import GetMessageStatus, GetResult, MessageStore, StoreConfig
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.text import java_hash
from tests.broker.store.store_box import StoreBox


@pytest.fixture
def hundred(box: StoreBox) -> MessageStore:
    """Queue 0 of topic T with 100 messages."""
    store = box.open()
    for number in range(100):
        box.put(store, body=b"%03d" % number, tag="even" if number % 2 == 0 else "odd", at=1_000 + number)
    return store


def bodies(result: GetResult) -> list[bytes]:
    return [message.stored_body for message in decode_records(result.body)]


def outcome(result: GetResult) -> tuple[str, int]:
    return result.status.name, result.next_begin_offset


def test_B08_a_queue_without_messages(box: StoreBox) -> None:
    store = box.open()
    assert outcome(store.get_message("T", 0, 0, 32, None)) == ("NO_MESSAGE_IN_QUEUE", 0)
    assert outcome(store.get_message("T", 0, 5, 32, None)) == ("NO_MESSAGE_IN_QUEUE", 0)
    assert (store.min_offset("T", 0), store.max_offset("T", 0)) == (0, 0)
    assert not (box.root / "consumequeue").exists()


def test_B04_at_the_end(hundred: MessageStore) -> None:
    assert outcome(hundred.get_message("T", 0, 100, 32, None)) == ("OFFSET_OVERFLOW_ONE", 100)


def test_B06_beyond_the_end(hundred: MessageStore) -> None:
    assert outcome(hundred.get_message("T", 0, 101, 32, None)) == ("OFFSET_OVERFLOW_BADLY", 100)
    assert outcome(hundred.get_message("T", 0, 2**62, 32, None)) == ("OFFSET_OVERFLOW_BADLY", 100)


def test_a_negative_offset_is_below_the_minimum(hundred: MessageStore) -> None:
    assert outcome(hundred.get_message("T", 0, -1, 32, None)) == ("OFFSET_TOO_SMALL", 0)


def test_found_messages_are_the_records_of_the_log(hundred: MessageStore) -> None:
    result = hundred.get_message("T", 0, 10, 5, None)
    assert outcome(result) == ("FOUND", 15)
    assert (result.message_count, result.min_offset, result.max_offset) == (5, 0, 100)
    assert bodies(result) == [b"010", b"011", b"012", b"013", b"014"]


def test_at_most_32_messages_when_near_the_tail(hundred: MessageStore) -> None:
    result = hundred.get_message("T", 0, 0, 1_000, None)
    assert (result.message_count, result.next_begin_offset) == (32, 32)


def test_at_most_256_KiB_but_the_first_message_always(box: StoreBox) -> None:
    store = box.open(config=StoreConfig(mapped_file_size_commit_log=8_388_608))
    for size in (300_000, 100_000, 100_000, 100_000):
        box.put(store, body=b"x" * size)
    assert store.get_message("T", 0, 0, 32, None).message_count == 1
    assert store.get_message("T", 0, 1, 32, None).message_count == 2


@pytest.mark.parametrize("key", ["memory", "disk"])
@pytest.mark.parametrize(("spare", "count"), [(-1, 2), (0, 3)])
def test_records_may_fill_the_transfer_limit_to_the_byte(
    box: StoreBox, key: str, spare: int, count: int
) -> None:
    limit = 3 * (91 + 1 + 100) + spare
    memory = 1 << 30 if key == "memory" else 0
    config = msgspec.structs.replace(
        box.config, physical_memory_bytes=memory, **{f"max_transfer_bytes_on_message_in_{key}": limit}
    )
    store = box.open(config=config)
    for _ in range(5):
        box.put(store, body=b"x" * 100)
    assert store.get_message("T", 0, 0, 32, None).message_count == count


def test_B29_cold_data_comes_8_messages_or_64_KiB_at_a_time(box: StoreBox) -> None:
    config = StoreConfig(mapped_file_size_commit_log=1_048_576, physical_memory_bytes=100_000)
    store = box.open(config=config)
    for _ in range(32):
        box.put(store, body=b"s" * 100)
    for _ in range(5):
        box.put(store, topic="Big", body=b"b" * 30_000)
    # 40 % of the memory is 40 000 bytes.
    assert store.get_message("T", 0, 0, 32, None).message_count == 8
    assert store.get_message("Big", 0, 0, 32, None).message_count == 2
    assert store.is_cold("T", 0, 0)
    assert not store.is_cold("Big", 0, 4)
    assert not store.is_cold("T", 0, 32)
    assert not store.is_cold("Nobody", 0, 0)


def test_a_tag_filter_returns_what_matches_and_moves_past_the_rest(hundred: MessageStore) -> None:
    result = hundred.get_message("T", 0, 0, 3, frozenset((java_hash("odd"),)))
    assert outcome(result) == ("FOUND", 6)
    assert bodies(result) == [b"001", b"003", b"005"]


def test_a_filter_that_matches_nothing(hundred: MessageStore) -> None:
    result = hundred.get_message("T", 0, 0, 32, frozenset((java_hash("none"),)))
    assert outcome(result) == ("NO_MATCHED_MESSAGE", 100)
    assert result.body == b""


def test_one_read_scans_800_entries(box: StoreBox) -> None:
    config = StoreConfig(mapped_file_size_commit_log=1_048_576)
    store = box.open(config=config)
    for _ in range(10):
        box.put_batch(store, [b""] * 100)
    nothing = frozenset((java_hash("none"),))
    assert outcome(store.get_message("T", 0, 0, 32, nothing)) == ("NO_MATCHED_MESSAGE", 800)
    assert outcome(store.get_message("T", 0, 800, 32, nothing)) == ("NO_MATCHED_MESSAGE", 1_000)
    assert outcome(store.get_message("T", 0, 0, 900, nothing)) == ("NO_MATCHED_MESSAGE", 900)


def test_records_between_other_queues_and_across_segments(box: StoreBox) -> None:
    store = box.open()
    for number in range(60):
        box.put(store, queue_id=number % 3, body=b"%02d" % number * 1_000)
    offset = 0
    seen: list[bytes] = []
    while (result := store.get_message("T", 1, offset, 7, None)).status is GetMessageStatus.FOUND:
        seen += bodies(result)
        offset = result.next_begin_offset
    assert seen == [b"%02d" % number * 1_000 for number in range(1, 60, 3)]


def test_entries_of_a_deleted_segment(box: StoreBox) -> None:
    store = box.open()
    for number in range(60):
        box.put(store, body=b"%02d" % number * 1_000)
    store.close()
    # After retention has deleted the oldest segment, entries have no records.
    (box.root / "commitlog" / ("0" * 20)).unlink()
    reopened = box.open()
    first_kept = reopened.min_offset("T", 0)
    assert 0 < first_kept < 60
    assert outcome(reopened.get_message("T", 0, 10, 32, None)) == ("OFFSET_TOO_SMALL", first_kept)
    assert reopened.get_message("T", 0, first_kept, 1, None).message_count == 1


@pytest.mark.parametrize("offset", [-1, 1, 50, 2**40, 2**63])
def test_look_message_gives_nothing_for_positions_where_no_record_starts(
    hundred: MessageStore, offset: int
) -> None:
    assert hundred.look_message(offset) is None


def test_look_message_at_the_end_of_the_log(hundred: MessageStore) -> None:
    assert hundred.look_message(hundred.max_commit_log_offset) is None


def test_store_time_of_a_message(hundred: MessageStore) -> None:
    assert hundred.store_time("T", 0, 42) == 1_042
    assert hundred.store_time("T", 0, 100) == -1
    assert hundred.store_time("T", 0, -1) == -1
    assert hundred.store_time("Nobody", 0, 0) == -1
