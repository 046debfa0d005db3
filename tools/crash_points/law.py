"""The law of the store: what a broker must have after a power failure.

Under SYNC_FLUSH nothing acknowledged is lost. Nothing is invented, and no deleted topic comes back. Offsets,
epochs, topics and groups have their last durable value or a later one. The queues equal a rebuild from the
log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rewindmq.broker.broker import Broker
from rewindmq.broker.store import MessageStore
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels, TagsCoder
from rewindmq.broker.store.layout.topic_end import is_topic_end
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import TIMER_OUT_MS
from rewindmq.protocol.message.record import MAGIC_BLANK, crc_ok, decode_record, decode_records
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import (
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANS_GROUP,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
)
from rewindmq.protocol.remoting.slices.run import run_at_once
from tools.crash_points.ledger import AcknowledgedSend, Known

_HALF = (int(MessageSysFlag.TRANSACTION_PREPARED), int(MessageSysFlag.TRANSACTION_ROLLBACK))
_MAX_RECORDS = 100_000
_MAX_QUEUES = 16
_SLOT_MS = 1_000


class LawError(Exception):
    """A broken rule; the text says which."""


@dataclass(slots=True)
class Rebuilt:
    """What the log says, found by a plain loop over its bytes.

    Attributes:
        queues: topic and queue to offset to message.
        bodies: the bodies of each topic.
    """

    queues: dict[tuple[str, int], dict[int, MessageExt]] = field(default_factory=dict)
    bodies: dict[str, set[bytes]] = field(default_factory=dict)
    log: bytes = b""


def check_store(broker: Broker, known: Known, *, is_durable: bool) -> Rebuilt:
    """Check log and queues.

    Args:
        is_durable: an acknowledged message must be there.

    Raises:
        LawError: a rule is broken.
    """
    store = broker.context.store
    coder = TagsCoder(DelayLevels(broker.context.config.store.message_delay_level))
    rebuilt = Rebuilt()
    for message in _records(store, rebuilt):
        if is_topic_end(message.sys_flag, message.packed_properties):
            for key in [key for key in rebuilt.queues if key[0] == message.topic]:
                del rebuilt.queues[key]
            continue
        _check_known(message, known)
        if message.sys_flag & TRANSACTION_MASK not in _HALF:
            key = (message.topic, message.queue_id)
            if known.may_expire and message.queue_offset == 0:
                # The queue had no message left and starts over; a lost unlink brings older messages back.
                rebuilt.queues[key] = {}
            rebuilt.queues.setdefault(key, {})[message.queue_offset] = message
        rebuilt.bodies.setdefault(message.topic, set()).add(message.stored_body)
    compacted = {topic.topic for topic in known.topics.values() if topic.is_compacted}
    for (topic, queue_id), messages in rebuilt.queues.items():
        # A compacted queue may also have a message that was not acknowledged and that the log has lost.
        if topic not in known.dropped | compacted:
            _check_queue(store, coder, topic, queue_id, messages, may_expire=known.may_expire)
    for (topic, queue_id), promised in known.stored.items():
        if topic not in known.dropped:
            messages = rebuilt.queues.get((topic, queue_id), {})
            may_have_more = known.may_expire or topic in compacted
            if not messages and not may_have_more and store.max_offset(topic, queue_id):
                raise LawError(f"queue {queue_id} of {topic} has entries, but the log has no message of it")
            if is_durable:
                _check_promises(store, promised, messages, may_expire=known.may_expire)
    return rebuilt


def check_ended(broker: Broker, known: Known, rebuilt: Rebuilt) -> None:
    """Check that the queues of topics whose deletion was acknowledged have only messages from later.

    Raises:
        LawError: a deleted message is back.
    """
    for (topic, queue_id), messages in rebuilt.queues.items():
        back = [offset for offset, message in messages.items() if message.stored_body in known.gone]
        if back:
            raise LawError(f"queue {queue_id} of {topic} has a deleted message at {back[0]}")
    for topic in known.ended - known.dropped:
        for queue_id in range(_MAX_QUEUES):
            end = broker.context.store.max_offset(topic, queue_id)
            if end and (topic, queue_id) not in rebuilt.queues:
                raise LawError(f"queue {queue_id} of the deleted topic {topic} ends at {end}")


def _records(store: MessageStore, rebuilt: Rebuilt) -> Iterator[MessageExt]:
    position = store.min_commit_log_offset
    for _ in range(_MAX_RECORDS):
        if position >= store.max_commit_log_offset:
            return
        rest = store.log_chunk(position, 1 << 30)
        size, magic = int.from_bytes(rest[:4]), int.from_bytes(rest[4:8])
        if magic == MAGIC_BLANK or size < 4:
            rebuilt.log += rest
            position += len(rest)
            continue
        message = decode_record(rest)
        if message.commit_log_offset != position or not crc_ok(message):
            raise LawError(f"the record at log position {position} is damaged")
        rebuilt.log += rest[:size]
        position += size
        yield message


def _check_known(message: MessageExt, known: Known) -> None:
    if message.topic == TRANS_OP_HALF_TOPIC:
        return
    where = f"the record at log position {message.commit_log_offset} (topic {message.topic!r})"
    attempt = known.attempts.get(message.stored_body)
    if attempt is None:
        raise LawError(f"{where} is a message that nobody sent")
    if message.topic not in (attempt.topic, SCHEDULE_TOPIC, TIMER_TOPIC, TRANS_HALF_TOPIC):
        raise LawError(f"{where} was sent to {attempt.topic}")
    properties = message.packed_properties
    if message.properties.get("KEYS") != attempt.key or b"\0" in properties:
        raise LawError(f"{where} has other properties than the message that was sent")
    ended = known.endings.get(message.stored_body)
    if message.topic == attempt.topic and message.stored_body in known.halves and not ended:
        raise LawError(f"{where} belongs to a transaction that was not committed")


def _check_queue(
    store: MessageStore,
    coder: TagsCoder,
    topic: str,
    queue_id: int,
    messages: dict[int, MessageExt],
    *,
    may_expire: bool,
) -> None:
    where = f"queue {queue_id} of {topic}"
    first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
    if end != max(messages) + 1 and not (may_expire and end == 0):
        raise LawError(f"{where} ends at {end}, the log says {max(messages) + 1}")
    if first > min(messages) and not may_expire:
        raise LawError(f"{where} begins at {first}, the log says {min(messages)}")
    for offset in range(first, end):
        entry, message = store.entry(topic, queue_id, offset), messages.get(offset)
        if message is None:
            if offset >= min(messages):
                raise LawError(f"{where} has an entry at {offset}, but the log has no such message")
            continue
        code = coder.tags_code(topic, message.packed_properties, message.store_timestamp)
        expected = (message.commit_log_offset, message.store_size, code)
        if entry != expected:
            raise LawError(f"{where} has {entry} at {offset}, the log says {expected}")


def _check_promises(
    store: MessageStore,
    promised: dict[int, AcknowledgedSend],
    messages: dict[int, MessageExt],
    *,
    may_expire: bool,
) -> None:
    first, promised_first = messages.get(0), promised.get(0)
    if may_expire and first and promised_first and first.stored_body != promised_first.body:
        # The queue starts over with a message that is not acknowledged yet.
        return
    for offset, stored in promised.items():
        message = messages.get(offset)
        if message is None:
            if may_expire and offset < min(messages, default=1 << 62):
                continue
            raise LawError(
                f"acknowledged message {offset} of queue {stored.queue_id} of {stored.topic} is lost"
            )
        if message.stored_body != stored.body:
            raise LawError(
                f"message {offset} of queue {stored.queue_id} of {stored.topic} is not the acknowledged one"
            )


def check_promises(broker: Broker, known: Known, rebuilt: Rebuilt, *, is_durable: bool) -> None:
    """Check delays, transactions, resets, topics and groups.

    Raises:
        LawError: a promise is broken.
    """
    _check_tables(broker, known)
    if is_durable:
        _check_delays(broker, known, rebuilt)
        _check_transactions(broker, known, rebuilt)
    _check_compaction(broker, known, rebuilt)


def _check_tables(broker: Broker, known: Known) -> None:
    context = broker.context
    for topic in known.topics.values():
        found = context.tables.topics.find(topic.topic)
        # Another change of the topic may have been on its way.
        if found is None or found.write_queue_nums < topic.queues:
            raise LawError(f"acknowledged topic {topic.topic} is {found}")
    for group in known.groups.values():
        config = context.tables.groups.find(group.group)
        if config is None or config.retry_max_times < group.retry_max_times:
            raise LawError(f"acknowledged group {group.group} is {config}")
    for (name, of_topic), count in known.resets.items():
        epoch = context.offsets.table.epoch(name, of_topic, 0)
        if not count <= epoch <= count + 1:
            raise LawError(f"group {name} has epoch {epoch} after {count} acknowledged resets")


def _check_delays(broker: Broker, known: Known, rebuilt: Rebuilt) -> None:
    progress = broker.context.delays.offsets.table
    for delayed in known.delayed:
        scheduled = rebuilt.queues.get((SCHEDULE_TOPIC, delayed.level - 1), {}).get(delayed.offset)
        if scheduled is None or scheduled.stored_body != delayed.body:
            raise LawError(f"delayed message {delayed.offset} of level {delayed.level} is lost")
        is_delivered = delayed.body in rebuilt.bodies.get(known.attempts[delayed.body].topic, ())
        if not is_delivered and delayed.offset < progress.get(delayed.level, 0):
            raise LawError(f"delayed message {delayed.offset} of level {delayed.level} is never delivered")


def check_timers(broker: Broker, known: Known) -> None:
    """Check that every acknowledged timer message was delivered, and none early; all are due now.

    Raises:
        LawError: one is lost, or early.
    """
    rebuilt = Rebuilt()
    delivered = {}
    for message in _records(broker.context.store, rebuilt):
        if message.topic != TIMER_TOPIC and (out_ms := message.properties.get(TIMER_OUT_MS)) is not None:
            delivered[message.stored_body] = message
            if message.store_timestamp < int(out_ms) + _SLOT_MS:
                raise LawError(f"timer message {message.stored_body[:20]!r} is early")
    lost = [body for body in known.timed if body not in delivered]
    if lost:
        raise LawError(f"timer message {lost[0][:20]!r} is never delivered")


def _check_transactions(broker: Broker, known: Known, rebuilt: Rebuilt) -> None:
    halves = rebuilt.queues.get((TRANS_HALF_TOPIC, 0), {})
    done: set[int] = set()
    for op in rebuilt.bodies.get(TRANS_OP_HALF_TOPIC, ()):
        done.update(int(text) for text in op.decode().split(",") if text)
    progress = max(broker.context.offsets.table.query(TRANS_GROUP, TRANS_HALF_TOPIC, 0), 0)
    open_halves = {
        half.stored_body for offset, half in halves.items() if offset >= progress and offset not in done
    }
    for body in known.halves:
        is_committed = body in rebuilt.bodies.get(known.attempts[body].topic, ())
        may_be_rolled_back = known.endings.get(body) is False
        if not is_committed and not may_be_rolled_back and body not in open_halves:
            raise LawError(f"half message {body[:20]!r} is neither committed nor going to be checked")


def check_keys(broker: Broker, known: Known, rebuilt: Rebuilt) -> None:
    """Check that a query by key finds each message.

    Raises:
        LawError: it does not.
    """
    store = broker.context.store
    if not store.update_index(store.max_commit_log_offset, _MAX_RECORDS):
        raise LawError("the key index does not reach the log's end")
    for (topic, queue_id), messages in rebuilt.queues.items():
        for offset in known.stored.get((topic, queue_id), ()):
            message = messages.get(offset)
            if message is None:
                continue
            key = message.properties["KEYS"]
            result = run_at_once(store.query_message(topic, key, 64, 0, 2**62))
            found = decode_records(result.body)
            if message.commit_log_offset not in [record.commit_log_offset for record in found]:
                raise LawError(
                    f"a query for key {key} of {topic} does not find log position {message.commit_log_offset}"
                )


def _check_compaction(broker: Broker, known: Known, rebuilt: Rebuilt) -> None:
    store = broker.context.store
    for topic in known.topics.values():
        if not topic.is_compacted:
            continue
        for queue_id in range(topic.queues):
            for offset, message in rebuilt.queues.get((topic.topic, queue_id), {}).items():
                read = decode_records(store.get_message(topic.topic, queue_id, offset, 1, None).body)
                if not read or read[0].queue_offset != offset or read[0].stored_body != message.stored_body:
                    raise LawError(f"the compacted queue of {topic.topic} lacks message {offset}")
            for message in _served(store, topic.topic, queue_id):
                attempt = known.attempts.get(message.stored_body)
                if attempt is None or attempt.topic != topic.topic:
                    raise LawError(
                        f"the compacted queue of {topic.topic} has a message that nobody sent to it"
                    )


def _served(store: MessageStore, topic: str, queue_id: int) -> Iterator[MessageExt]:
    """Yield the messages that pulls get from a queue."""
    offset = store.min_offset(topic, queue_id)
    while messages := decode_records(store.get_message(topic, queue_id, offset, 32, None).body):
        yield from messages
        offset = messages[-1].queue_offset + 1


def check_versions(loaded: dict[str, Any], versions: dict[str, list[Any]]) -> None:
    """Check that each table file has its last durable content or a later one.

    Raises:
        LawError: it has not.
    """
    for name, allowed in versions.items():
        if loaded.get(name) not in allowed:
            raise LawError(f"{name} is not its last durable version, nor one that was on its way")
