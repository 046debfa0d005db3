"""The large cluster of the dashboard's benchmark: many topics and offsets, and a history of resets."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from rewindmq import LocalCluster
from rewindmq.broker.store import BatchEntry, MessageStore, StoreConfig, StoredMessage
from rewindmq.dashboard.resets.record import (
    VERSION,
    QueueRecord,
    RecordedEvent,
    ResetRecord,
    Seen,
    SeenPosition,
    Status,
)
from rewindmq.watch.verdict.states import State

TOPICS: Final = 1_000
GROUPS: Final = 1_000
# Of each topic except the wide one. Each group has consumed one topic.
QUEUES: Final = 100
# One more topic, with as many queues as a page resets at most, and its group, which has no consumer.
WIDE: Final = "wide"
WIDE_GROUP: Final = "wide-readers"
WIDE_QUEUES: Final = 1_000
# A group that has consumed half of the topics: brokers list up to 70,000 queues.
MANY: Final = "many-topics"
_MANY_TOPICS: Final = TOPICS // 2
# A topic and group of the many.
BUSY: Final = "topic-0007"
GROUP: Final = "group-0007"
# Consumers of that group, in a process of their own.
CONSUMERS: Final = 20
# Records of resets. The last is of the wide topic: each confirmed reset drops the first from the list.
RECORDS: Final = 1_000
_BUSY_TOPICS: Final = 10
_DEAD: Final = f"%DLQ%{GROUP}"
_DEAD_LETTERS: Final = 40
_MESSAGES: Final = 32
_BODY: Final = b'{"order": 1}'
# Samples of each queue of the record of 1,000 queues: as many as a record of so many queues keeps.
_SEEN: Final = 8


@dataclass(frozen=True)
class LargeCluster:
    """The running cluster, and the folder of the resets' records."""

    cluster: LocalCluster
    history: Path


@contextlib.contextmanager
def large_cluster() -> Iterator[LargeCluster]:
    """Run a cluster of one broker with all topics and offsets, messages in some topics, and 20 consumers."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as name:
        directory = Path(name)
        store, history = directory / "broker-a" / "store", directory / "resets"
        _put_messages(store)
        _write_tables(store / "config")
        _write_records(history)
        with LocalCluster(1, directory=directory, start_seconds=120.0) as cluster, _consumers(cluster):
            yield LargeCluster(cluster, history)


def topic_name(number: int) -> str:
    return f"topic-{number:04}"


def _write_tables(config: Path) -> None:
    config.mkdir(parents=True, exist_ok=True)
    names = {topic_name(number): QUEUES for number in range(TOPICS)} | {WIDE: WIDE_QUEUES, _DEAD: 1}
    groups = [f"group-{number:04}" for number in range(GROUPS)]
    names |= {f"%RETRY%{group}": 1 for group in (*groups, MANY, WIDE_GROUP)}
    topics = {
        name: {"topicName": name, "readQueueNums": count, "writeQueueNums": count, "perm": 6}
        for name, count in names.items()
    }
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))
    half = dict.fromkeys(range(QUEUES), _MESSAGES // 2)
    offsets = {f"{topic_name(number)}@{group}": half for number, group in enumerate(groups)}
    offsets |= {f"{topic_name(number)}@{MANY}": half for number in range(_MANY_TOPICS)}
    offsets |= {f"{WIDE}@{WIDE_GROUP}": dict.fromkeys(range(WIDE_QUEUES), 1)}
    (config / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))


def _put_messages(root: Path) -> None:
    store = MessageStore(root, StoreConfig(), lambda: time.time_ns() // 1_000_000)
    store.open()
    entries = [
        BatchEntry(_BODY, b"KEYS\x01key-%d\x02TAGS\x01blue" % number, 0, 0) for number in range(_MESSAGES)
    ]
    for topic in range(_BUSY_TOPICS):
        for queue in range(QUEUES):
            store.put_batch(StoredMessage(topic_name(topic), queue, b""), entries)
    for queue in range(WIDE_QUEUES):
        store.put_batch(StoredMessage(WIDE, queue, b""), entries[:2])
    dead = [
        BatchEntry(_BODY, b"KEYS\x01key-%d\x02RETRY_TOPIC\x01%s" % (number, BUSY.encode()), 0, 0)
        for number in range(_DEAD_LETTERS)
    ]
    store.put_batch(StoredMessage(_DEAD, 0, b""), dead)
    store.close()


def record_id(number: int) -> str:
    """Return the id of a record; one second is between two of them."""
    return f"20260101T{number // 3600:02}{number // 60 % 60:02}{number % 60:02}-{number:08x}"


def _write_records(folder: Path) -> None:
    folder.mkdir()
    for number in range(RECORDS):
        record = _record(number)
        (folder / f"{record.id}.json").write_bytes(msgspec.json.encode(record))


def _record(number: int) -> ResetRecord:
    is_wide = number == RECORDS - 1
    record = ResetRecord(
        version=VERSION,
        id=record_id(number),
        group=WIDE_GROUP if is_wide else f"group-{number % GROUPS:04}",
        topic=WIDE if is_wide else topic_name(number % TOPICS),
        timestamp=0,
        began_ms=1_767_225_600_000 + 1000 * number,
        status=Status.LOST,
        ended_ms=1_767_225_660_000 + 1000 * number,
    )
    for queue in range(WIDE_QUEUES if is_wide else 1):
        state = State.LOST if queue % 10 == 0 else State.PROVEN
        seen = [
            Seen(float(step), min(step, 2), (SeenPosition("10.0.0.1@1", min(step, 2), True, False),))
            for step in range(_SEEN)
        ]
        row = QueueRecord("broker-a", queue, 2, 0, state, 2, 40.0, "10.0.0.1@1", seen=seen)
        record.queues.append(row)
        record.events += (
            RecordedEvent(float(step), str(each), "stored 0, target 0", row.name)
            for step, each in enumerate((State.STORED, State.REDELIVERING, state))
        )
    record.count()
    return record


@contextlib.contextmanager
def _consumers(cluster: LocalCluster) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.dashboard_group", cluster.namesrv_address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise SystemExit("bench: the consumers of the dashboard's group did not start")
        yield
    finally:
        # It ends with its standard input.
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
