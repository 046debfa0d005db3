"""The expected output of an index job, in plain Python: message by message, as RocketMQ 4.9.4 writes it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC, DelayLevels
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import encode_record
from rewindmq.protocol.text import java_hash

LEVELS = DelayLevels("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
ROLLBACK, PREPARED, TRANSACTION = 0xC, 0x4, 0xC
Posting = tuple[str, int, int]


def postings(log: Iterable[MessageExt]) -> Iterator[Posting]:
    """(topic#key, log position, store time) in the order a broker posts them."""
    for message in log:
        if message.sys_flag & TRANSACTION == ROLLBACK:
            continue
        unique = message.properties.get("UNIQ_KEY")
        for key in [*([unique] if unique else []), *message.properties.get("KEYS", "").split(" ")]:
            if key:
                yield f"{message.topic}#{key}", message.commit_log_offset, message.store_timestamp


def index_files(entries: Iterable[Posting], max_hash_slot_num: int, max_index_num: int) -> list[bytes]:
    """The files, IndexFile#putKey of 4.9.4 line by line."""
    files: list[bytearray] = []
    begin_time = end_time = begin_phy = end_phy = used = 0
    count = max_index_num
    for text, phy, time in entries:
        if count >= max_index_num:
            files.append(bytearray(40 + 4 * max_hash_slot_num + 20 * max_index_num))
            begin_time, begin_phy, used, count = end_time, end_phy, 0, 1
        data = files[-1]
        value = abs(java_hash(text))
        value = 0 if value == 1 << 31 else value
        slot = 40 + 4 * (value % max_hash_slot_num)
        (old,) = struct.unpack_from(">i", data, slot)
        seconds = 0 if begin_time <= 0 else min(max((time - begin_time) // 1000, 0), 0x7FFF_FFFF)
        struct.pack_into(">iqii", data, 40 + 4 * max_hash_slot_num + 20 * count, value, phy, seconds, old)
        struct.pack_into(">i", data, slot, count)
        if count == 1:
            begin_time, begin_phy = time, phy
        used, count, end_time, end_phy = used + (old == 0), count + 1, time, phy
        struct.pack_into(">qqqqii", data, 0, begin_time, end_time, begin_phy, end_phy, used, count)
    return [bytes(data) for data in files]


def tags_code(message: MessageExt) -> int:
    """The last field of an entry."""
    delay = message.properties.get("DELAY", "")
    if message.topic == SCHEDULE_TOPIC and delay.isdigit() and int(delay) > 0:
        return LEVELS.delivery_time(int(delay), message.store_timestamp)
    tag = message.properties.get("TAGS")
    return java_hash(tag) if tag else 0


def queue_entries(log: Iterable[MessageExt]) -> dict[tuple[str, int], list[tuple[int, int, int, int]]]:
    """Entries of each queue from the first file's begin on: position, size, tagsCode; and the store time."""
    queues: dict[tuple[str, int], list[tuple[int, int, int, int]]] = {}
    for message in log:
        if message.sys_flag & TRANSACTION in (PREPARED, ROLLBACK):
            continue
        entries = queues.setdefault((message.topic, message.queue_id), [])
        if not entries:
            entries += [(0, 0x7FFF_FFFF, 0, 0)] * message.queue_offset
        if message.queue_offset < len(entries):
            if message.queue_offset:
                continue
            entries.clear()
        place = message.commit_log_offset, message.store_size, tags_code(message), message.store_timestamp
        entries.append(place)
    return queues


def queue_files(log: Iterable[MessageExt], file_bytes: int) -> dict[str, bytes]:
    """Return consume queue and time index files by their paths, without files that have fillers only."""
    files: dict[str, bytes] = {}
    per_file = file_bytes // 20
    for (topic, queue_id), entries in queue_entries(log).items():
        for first in range(0, len(entries), per_file):
            part = entries[first : first + per_file]
            if part[-1][1] != 0x7FFF_FFFF:
                data = b"".join(struct.pack(">qiq", *entry[:3]) for entry in part)
                files[f"consumequeue/{topic}/{queue_id}/{first * 20:020d}"] = data.ljust(file_bytes, b"\0")
                times = b"".join(struct.pack(">q", entry[3]) for entry in part)
                files[f"timeindex/{topic}/{queue_id}/{first * 8:020d}"] = times.ljust(per_file * 8, b"\0")
    return files


def files_below(root: Path, *folders: str) -> dict[str, bytes]:
    """The content of every file in these folders, by its path."""
    found = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def write_log(root: Path, records: Sequence[tuple[str, int, int, int, str]], segment: int = 65_536) -> None:
    """Write a segment of records that no broker writes: (topic, queue, offset, sysFlag, properties)."""
    data = b""
    for number, (topic, queue_id, queue_offset, sys_flag, properties) in enumerate(records):
        data += encode_record(
            topic=topic,
            stored_body=b"body",
            properties=properties.encode(),
            queue_id=queue_id,
            queue_offset=queue_offset,
            physical_offset=len(data),
            born_timestamp=1_700_000_000_000 + number,
            born_host=b"\x7f\x00\x00\x01\x00\x00\x2a\x9f",
            store_timestamp=1_700_000_000_000 + 400 * number,
            store_host=b"\x7f\x00\x00\x01\x00\x00\x2a\x9f",
            sys_flag=sys_flag,
        )
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / f"{0:020d}").write_bytes(data.ljust(segment, b"\0"))
