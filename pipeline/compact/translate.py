"""Writes the output's configuration: topics, groups, and translated offsets of groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from hashlib import blake2b
from typing import Any, Final

from rewindmq.broker.store.layout.compaction import CLEANUP_POLICY, COMPACTION
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.protocol.names import SCHEDULE_TOPIC

TOPICS: Final = "topics.json"
GROUPS: Final = "subscriptionGroup.json"
CONSUMER_OFFSETS: Final = "consumerOffset.json"
DELAY_OFFSETS: Final = "delayOffset.json"
_TOPIC_TABLE: Final = "topicConfigTable"
_OFFSET_TABLE: Final = "offsetTable"
_READ_WRITE: Final = 6

# Maps (topic, queueId, offset) to the new offset of the same message.
Translate = Callable[[str, int, int], int]
# Maps a file name to the file's JSON content.
Configuration = Mapping[str, Mapping[str, Any]]


def read_configuration(snapshot: StoreSnapshot) -> dict[str, Mapping[str, Any]]:
    """Read the configuration files that a compaction needs.

    Raises:
        PipelineError: a file cannot be read.
    """
    names = (TOPICS, GROUPS, CONSUMER_OFFSETS, DELAY_OFFSETS)
    return {name: dict(snapshot.config(name)) for name in names}


def digest_of(configuration: Configuration) -> str:
    """Return a digest of the configuration that ignores the files' data versions."""
    tables = {
        name: {key: value for key, value in table.items() if key != "dataVersion"}
        for name, table in configuration.items()
    }
    return blake2b(json.dumps(tables, sort_keys=True).encode(), digest_size=16).hexdigest()


def delay_offsets(delay_offset_json: Mapping[str, Any]) -> dict[int, int]:
    """Return, per level, the queue offset of its first undelivered message."""
    return {int(level): int(offset) for level, offset in _table(delay_offset_json, _OFFSET_TABLE).items()}


def offsets_to_translate(
    consumer_offset_json: Mapping[str, Any], delay_offset_json: Mapping[str, Any]
) -> dict[tuple[str, int], list[int]]:
    """Return every offset that the configuration names, by (topic, queueId)."""
    found: dict[tuple[str, int], list[int]] = {}
    for name, queues in _table(consumer_offset_json, _OFFSET_TABLE).items():
        for queue_id, offset in queues.items():
            found.setdefault((_topic_of(name), int(queue_id)), []).append(int(offset))
    for level, offset in delay_offsets(delay_offset_json).items():
        found.setdefault((SCHEDULE_TOPIC, level - 1), []).append(offset)
    return found


def make_translation(
    ranks: Mapping[tuple[str, int, int], int], ends: Mapping[tuple[str, int], int]
) -> Translate:
    """Return a function that translates an offset of the source into one of the renumbered store.

    A group's next message is the first kept message at or after its offset. The new offset is the number of
    kept messages before it. An offset beyond the queue's end stays as far beyond the new end. A queue without
    messages starts at 0.

    Args:
        ranks: (topic, queueId, offset) to the number of kept messages below it.
        ends: (topic, queueId) to one past the last message's old queue offset.
    """

    def translate(topic: str, queue_id: int, offset: int) -> int:
        if offset < 0:
            return offset
        end = ends.get((topic, queue_id))
        if end is None:
            return 0
        return ranks[topic, queue_id, offset] + max(0, offset - end)

    return translate


def translated_offsets(consumer_offset_json: Mapping[str, Any], translate: Translate) -> dict[str, Any]:
    """Return the consumerOffset.json of the renumbered store; other fields stay unchanged."""
    table = {
        name: {
            str(queue_id): translate(_topic_of(name), int(queue_id), int(offset))
            for queue_id, offset in queues.items()
        }
        for name, queues in _table(consumer_offset_json, _OFFSET_TABLE).items()
    }
    return {**consumer_offset_json, _OFFSET_TABLE: table}


def translated_delays(delay_offset_json: Mapping[str, Any], translate: Translate) -> dict[str, Any]:
    """Return the delayOffset.json of the renumbered store."""
    table = {
        str(level): translate(SCHEDULE_TOPIC, level - 1, offset)
        for level, offset in delay_offsets(delay_offset_json).items()
    }
    return {**delay_offset_json, _OFFSET_TABLE: table}


def offsets_of(consumer_offset_json: Mapping[str, Any], topics: Collection[str]) -> dict[str, Any]:
    """Return consumerOffset.json with the entries of these topics only.

    The queues of all other topics start from 0, and no group has consumed from them.
    """

    def chosen(table: Mapping[str, Any]) -> dict[str, Any]:
        return {name: queues for name, queues in table.items() if _topic_of(name) in topics}

    return {
        name: chosen(value) if isinstance(value, Mapping) and name != "dataVersion" else value
        for name, value in consumer_offset_json.items()
    }


def marked_topics(topics_json: Mapping[str, Any], queues: Mapping[str, int]) -> dict[str, Any]:
    """Return topics.json with the compacted topics marked as compaction topics.

    Args:
        queues: compacted topic to its number of queues; missing topics get an entry.
    """
    table = dict(_table(topics_json, _TOPIC_TABLE))
    for topic, count in queues.items():
        entry = dict(table.get(topic) or _new_topic(topic, count))
        entry["attributes"] = {**(entry.get("attributes") or {}), CLEANUP_POLICY: COMPACTION}
        table[topic] = entry
    return {**topics_json, _TOPIC_TABLE: table}


def _new_topic(topic: str, queues: int) -> dict[str, Any]:
    return {
        "topicName": topic,
        "readQueueNums": queues,
        "writeQueueNums": queues,
        "perm": _READ_WRITE,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
    }


def to_json(value: Mapping[str, Any]) -> bytes:
    """Return a configuration file's content, in JSON that fastjson also reads."""
    return json.dumps(value, indent="\t").encode() + b"\n"


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = config.get(name)
    return value if isinstance(value, Mapping) else {}


def _topic_of(name: str) -> str:
    return name.partition("@")[0]
