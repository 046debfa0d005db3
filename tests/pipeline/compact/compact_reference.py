"""Compactions read back in plain Python, with every byte of their files accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rewindmq.broker.store.layout.compaction import ENTRY, ENTRY_BYTES
from rewindmq.pipeline.compact.options import CompactOptions, Keyless
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import BLANK, BLANK_BYTES, MAGIC_BLANK, decode_record
from rewindmq.protocol.text import java_hash
from tests.pipeline.reference import delay_offsets, kept_of_the_system, read_log, survivors

Queue = tuple[str, int]


def content(message: MessageExt) -> tuple[object, ...]:
    """The content of a record, without its position."""
    return (
        message.topic, message.queue_id, message.flag, message.sys_flag, message.born_timestamp,
        message.store_timestamp, message.reconsume_times, message.stored_body, message.properties,
    )  # fmt: skip


def expected_queues(
    store: Path, topics: Sequence[str], options: CompactOptions
) -> dict[Queue, list[MessageExt]]:
    """Return the messages of each compacted queue: the survivors, and the newest message with a key."""
    log = read_log(store)
    keyed = [m for m in log if m.topic in topics and m.keys]
    kept = survivors(
        log, topics, scope=options.scope, grace_ms=options.tombstone_grace_ms, keep_keyless=False
    )
    ends = {(m.topic, m.queue_id): m for m in keyed}
    chosen = {m.commit_log_offset for m in (*kept, *ends.values())}
    queues: dict[Queue, list[MessageExt]] = {}
    for message in keyed:
        if message.commit_log_offset in chosen:
            queues.setdefault((message.topic, message.queue_id), []).append(message)
    return queues


def expected_store(store: Path, topics: Sequence[str], options: CompactOptions) -> list[MessageExt]:
    """Return the messages of a new store, in the order of its log."""
    log = read_log(store)
    of_topics = survivors(
        log,
        topics,
        scope=options.scope,
        grace_ms=options.tombstone_grace_ms,
        keep_keyless=options.keyless is Keyless.KEEP,
    )
    other = [m for m in log if m.topic in ("Orders", "Prices") and m.topic not in topics]
    kept = [*of_topics, *kept_of_the_system(log, delay_offsets(store)), *other]
    return sorted(kept, key=lambda message: message.commit_log_offset)


def compaction_queues(root: Path) -> dict[Queue, list[MessageExt]]:
    """Read the messages of a compaction store; check that logs and queue files match."""
    found: dict[Queue, list[MessageExt]] = {}
    folder = root / "compaction" / "compactionLog"
    for queue in sorted(folder.glob("*/*")) if folder.exists() else ():
        entries = root / "compaction" / "compactionCq" / queue.parent.name / queue.name
        files = sorted(queue.iterdir())
        assert [file.name for file in files] == sorted(file.name for file in entries.iterdir())
        messages: list[MessageExt] = []
        for file in files:
            messages += _file(file, entries / file.name, is_last=file is files[-1])
        found[queue.parent.name, int(queue.name)] = messages
    return found


def _file(log: Path, entries: Path, *, is_last: bool) -> list[MessageExt]:
    data, table = log.read_bytes(), entries.read_bytes()
    assert len(table) % ENTRY_BYTES == 0
    base, at, messages = int(log.name), 0, []
    for number in range(len(table) // ENTRY_BYTES):
        position, size, tags_code, time, offset, count, compacted, rest = ENTRY.unpack_from(
            table, number * ENTRY_BYTES
        )
        if size == 0:
            assert position == (0 if is_last else -1)
            assert not any(table[(number + (not is_last)) * ENTRY_BYTES :])
            break
        assert position == base + at
        message = decode_record(data, at)
        assert (message.commit_log_offset, message.store_size, message.queue_offset) == (
            position,
            size,
            offset,
        )
        assert (time, count, compacted, rest) == (message.store_timestamp, 1, -1, 0)
        assert tags_code == (java_hash(message.tags) if message.tags else 0)
        messages.append(message)
        at += size
    if not is_last:
        assert BLANK.unpack_from(data, at) == (len(data) - at, MAGIC_BLANK)
        at += BLANK_BYTES
    assert not any(data[at:])
    assert log.stat().st_mtime_ns // 1_000_000 == max(message.store_timestamp for message in messages)
    return messages


def store_messages(root: Path) -> list[MessageExt]:
    """Read the messages of a new store; check that segments follow each other and end with blank records."""
    segments = sorted((root / "commitlog").iterdir())
    size = segments[0].stat().st_size
    assert [int(segment.name) for segment in segments] == [number * size for number in range(len(segments))]
    log = read_log(root)
    for segment in segments:
        inside = [m for m in log if int(segment.name) <= m.commit_log_offset < int(segment.name) + size]
        at = inside[-1].commit_log_offset + inside[-1].store_size - int(segment.name)
        data = segment.read_bytes()
        assert len(data) == size
        if segment is not segments[-1]:
            assert BLANK.unpack_from(data, at) == (size - at, MAGIC_BLANK)
            at += BLANK_BYTES
        assert not any(data[at:])
        assert segment.stat().st_mtime_ns // 1_000_000 == max(m.store_timestamp for m in inside)
    return log


def fingerprint(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: modification time and content."""
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
