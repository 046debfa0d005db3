"""Random stores, written by the store itself: keys, tombstones, delays, transactions, retries, torn tails."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from rewindmq.broker.store import MessageStore, PutStatus, StoreConfig, StoredMessage
from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC, DelayLevels
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.text import java_hash

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
START_MS = 1_700_000_000_000
COMMIT_FLAG = 0x8
GROUP = "G"


@dataclass
class LogWriter:
    """Writes one store, message by message; ``now`` is its clock in ms."""

    root: Path
    segment_bytes: int = 65_536
    consume_queue_bytes: int = 6_000
    now: int = START_MS
    topics: set[str] = field(default_factory=set)
    offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    delay_offsets: dict[int, int] = field(default_factory=dict)
    _unique: int = 0
    _delay_levels: DelayLevels = field(default_factory=lambda: DelayLevels("1s 5s 10s"))

    def __post_init__(self) -> None:
        config = StoreConfig(
            mapped_file_size_commit_log=self.segment_bytes,
            mapped_file_size_consume_queue=self.consume_queue_bytes,
        )
        self.store = MessageStore(self.root, config, lambda: self.now)
        self.store.open()

    def put(
        self,
        topic: str,
        queue_id: int = 0,
        body: bytes = b"value",
        *,
        keys: str | None = None,
        tag: str | None = None,
        properties: dict[str, str] | None = None,
        sys_flag: int = 0,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> tuple[int, int]:
        """Write one message; return its queue offset and its log position."""
        self._unique += 1
        named = {"UNIQ_KEY": f"7F0000010A2B18B4AAC2{self._unique:012X}", **(properties or {})}
        if keys is not None:
            named["KEYS"] = keys
        if tag is not None:
            named["TAGS"] = tag
        message = StoredMessage(
            topic=topic,
            queue_id=queue_id,
            body=body,
            properties=format_properties(named).encode(),
            tags_code=self._tags_code(topic, tag, named),
            sys_flag=sys_flag,
            born_timestamp=self.now - 3,
            reconsume_times=reconsume_times,
            prepared_transaction_offset=prepared_transaction_offset,
        )
        self.topics.add(topic)
        result = self.store.put_message(message)
        assert result.status is PutStatus.PUT_OK, result
        return result.queue_offset, result.physical_offset

    def _tags_code(self, topic: str, tag: str | None, properties: dict[str, str]) -> int:
        if topic == SCHEDULE_TOPIC:
            return self._delay_levels.delivery_time(int(properties["DELAY"]), self.now)
        return 0 if tag is None else java_hash(tag)

    def put_delayed(
        self, topic: str, queue_id: int, body: bytes, keys: str, level: int, *, deliver: bool
    ) -> None:
        """A delayed message; delivered in order of its level, as the schedule service does."""
        real = {"REAL_TOPIC": topic, "REAL_QID": str(queue_id), "DELAY": str(level)}
        offset, _ = self.put(SCHEDULE_TOPIC, level - 1, body, keys=keys, properties=real)
        if deliver and self.delay_offsets.get(level, 0) == offset:
            self.delay_offsets[level] = offset + 1
            self.now += 1_000
            self.put(topic, queue_id, body, keys=keys, properties=real)

    def put_transaction(self, topic: str, queue_id: int, body: bytes, keys: str, outcome: str) -> None:
        """Write a half message with an outcome: "open", "commit" or "rollback"."""
        real = {"REAL_TOPIC": topic, "REAL_QID": str(queue_id), "TRAN_MSG": "true", "PGROUP": "P"}
        half_offset, position = self.put(HALF_TOPIC, 0, body, keys=keys, properties=real)
        if outcome == "commit":
            self.put(
                topic,
                queue_id,
                body,
                keys=keys,
                properties=real,
                sys_flag=COMMIT_FLAG,
                prepared_transaction_offset=position,
            )
        if outcome != "open":
            self.put(OP_TOPIC, 0, str(half_offset).encode(), tag="d")

    def finish(self, *, attributes: dict[str, dict[str, str]] | None = None, clean: bool = True) -> None:
        """Write ``config/`` and close; ``clean=False`` leaves the store as a killed broker does."""
        self._config("topics.json", {"dataVersion": {"counter": 1, "timestamp": 1}, "topicConfigTable": {
            name: {
                "topicName": name, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6,
                "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False,
                **({"attributes": attributes[name]} if attributes and name in attributes else {}), }
            for name in sorted(self.topics)
        }})  # fmt: skip
        self._config("consumerOffset.json", {"offsetTable": self.offsets})
        self._config("delayOffset.json", {"offsetTable": self.delay_offsets})
        self._config(
            "subscriptionGroup.json",
            {
                "dataVersion": {"counter": 1, "timestamp": 1},
                "subscriptionGroupTable": {GROUP: {"groupName": GROUP}},
            },
        )
        self.store.close()
        if not clean:
            (self.root / "abort").touch()

    def _config(self, name: str, value: object) -> None:
        (self.root / "config" / name).write_text(json.dumps(value))


def random_store(root: Path, seed: int, count: int = 120) -> None:
    """A store of about ``count`` records: two user topics, and everything the system topics may hold.

    Odd seeds leave the store unclean, every third with a torn tail.
    """
    rng = random.Random(seed)
    writer = LogWriter(
        root, segment_bytes=rng.choice((8_192, 65_536)), consume_queue_bytes=rng.choice((200, 6_000))
    )
    keys = [f"key-{number}" for number in range(rng.randrange(1, 12))] + ["two words", "ключ"]
    for _ in range(count):
        writer.now += rng.choice((0, 0, 1, 7, 900, 2_500))
        topic, queue_id = rng.choice(("Orders", "Orders", "Prices")), rng.randrange(3)
        key, body = rng.choice(keys), rng.randbytes(rng.choice((1, 20, 300)))
        match rng.randrange(20):
            case 0 | 1 | 2:
                writer.put(topic, queue_id, b"", keys=key)
            case 3 | 4:
                writer.put(topic, queue_id, body, tag=rng.choice((None, "TagA", "标签")))
            case 5 | 6:
                level, deliver = rng.randrange(1, 4), rng.random() < 0.5
                writer.put_delayed(topic, queue_id, body, key, level, deliver=deliver)
            case 7 | 8:
                outcome = rng.choice(("open", "commit", "rollback"))
                writer.put_transaction(topic, queue_id, body, key, outcome)
            case 9:
                writer.put(
                    f"%RETRY%{GROUP}", 0, body, keys=key, properties={"RETRY_TOPIC": topic}, reconsume_times=1
                )
            case 10:
                writer.put(f"%DLQ%{GROUP}", 0, body, keys=key)
            case _:
                writer.put(topic, queue_id, body, keys=key, tag=rng.choice((None, "TagA", "TagB")))
    consumed: dict[str, dict[int, int]] = defaultdict(dict)
    for topic in ("Orders", "Prices"):
        for queue_id in range(3):
            if end := writer.store.max_offset(topic, queue_id):
                consumed[f"{topic}@{GROUP}"][queue_id] = rng.randrange(end + 1)
    writer.offsets = dict(consumed)
    writer.finish(clean=seed % 2 == 0)
    if seed % 3 == 0:
        tear(root, rng)


def tear(root: Path, rng: random.Random) -> None:
    """Put the first part of a record after the last record, like a crash during a write."""
    from tests.pipeline.reference import read_log

    last = read_log(root)[-1]
    segment, end = _segment_at(root, last.commit_log_offset)
    at = last.commit_log_offset - int(segment.name) + last.store_size
    with segment.open("r+b") as file:
        file.seek(last.commit_log_offset - int(segment.name))
        head = bytearray(file.read(min(last.store_size, 60)))
        head[28:36] = (int(segment.name) + at).to_bytes(8, "big")
        file.seek(at)
        file.write(head[: max(0, min(rng.randrange(9, 60), end - at))])


def _segment_at(root: Path, position: int) -> tuple[Path, int]:
    segments = sorted((root / "commitlog").iterdir())
    owner = [segment for segment in segments if int(segment.name) <= position][-1]
    return owner, owner.stat().st_size
