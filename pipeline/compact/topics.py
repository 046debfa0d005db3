"""Selects the topics to compact, and decides how their messages are treated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any

from rewindmq.broker.store.layout.compaction import CLEANUP_POLICY, COMPACTION
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.pipeline.errors import PipelineError
from rewindmq.protocol.names import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    is_system_topic,
)

_TABLE = "topicConfigTable"


class Treatment(IntEnum):
    """Treatment of a message, or of another record or place of the log."""

    # The newest message of its key is kept.
    KEYED = 0
    # Always kept.
    WHOLE = 1
    # A half message: kept unless an op record names it.
    HALF = 2
    # Not a message: an op record's reference to a half message.
    NAMED_HALF = 3
    # A message without a key, which is not kept.
    KEYLESS = 4
    # Delivered delayed messages, and op records.
    DONE = 5
    # A message of a topic that is not in the output.
    OTHER = 6
    # Prepared and rollback records, which are in no queue.
    OUTSIDE = 7
    # Not a message: a damaged place.
    DAMAGE = 8
    # From an earlier run: superseded, but kept as the newest message of its queue.
    END = 9
    # Damaged and left out, but it has used a queue offset.
    DAMAGED = 10


class TopicRules:
    """Treatment of each topic's messages; pickles.

    Attributes:
        chosen: the topics to compact; None: all user topics.
        delay_offsets: per level, queue offset of the first undelivered message.
    """

    def __init__(
        self, options: CompactOptions, chosen: Collection[str] | None, delay_offsets: Mapping[int, int]
    ) -> None:
        self.chosen = None if chosen is None else frozenset(chosen)
        self._is_store = options.format is Format.STORE
        self.delay_offsets = dict(delay_offsets)

    def is_compacted(self, topic: str) -> bool:
        """Whether only the newest message of each key is kept."""
        return is_user_topic(topic) if self.chosen is None else topic in self.chosen

    def kind_of(self, topic: str) -> Treatment:
        """Return the kind of a topic's messages that have a key, before their fields are checked."""
        if self.is_compacted(topic):
            return Treatment.KEYED
        if not self._is_store:
            return Treatment.OTHER
        if topic == TRANS_HALF_TOPIC:
            return Treatment.HALF
        return Treatment.DONE if topic == TRANS_OP_HALF_TOPIC else Treatment.WHOLE

    def first_undelivered(self, queue_id: int) -> int:
        """Return the queue offset of the first undelivered message of a delay level's queue."""
        return self.delay_offsets.get(queue_id + 1, 0)


def is_user_topic(topic: str) -> bool:
    """Whether the topic holds an application's own messages."""
    return not (
        is_system_topic(topic)
        or topic == SCHEDULE_TOPIC
        or topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX))
    )


def choose_topics(
    wanted: Collection[str], topics_json: Sequence[Mapping[str, Any]], known: Collection[str]
) -> frozenset[str] | None:
    """Return the topics to compact.

    Args:
        wanted: topics that the user named; if empty, those with attribute cleanup.policy=COMPACTION.
        topics_json: topics.json of all stores.
        known: topics that are configured or have a consume queue; empty for a log without configuration.

    Returns:
        The topics; None for all user topics, if neither the user nor an attribute names any.

    Raises:
        PipelineError: a topic is unknown, or is a system topic.
    """
    if not wanted:
        entries = [item for table in topics_json for item in table.get(_TABLE, {}).items()]
        return (
            frozenset(topic for topic, entry in entries if is_user_topic(topic) and is_marked(entry)) or None
        )
    known = {topic for topic in known if is_user_topic(topic)}
    for topic in sorted(wanted):
        if not is_user_topic(topic):
            raise PipelineError(f"{topic} is a system topic, which cannot be compacted")
        if known and topic not in known:
            raise PipelineError(f"unknown topic {topic}; known: {', '.join(sorted(known))}")
    return frozenset(wanted)


def is_marked(entry: Any) -> bool:
    """Whether an entry of topics.json has the attribute cleanup.policy=COMPACTION."""
    attributes = entry.get("attributes") if isinstance(entry, Mapping) else None
    return isinstance(attributes, Mapping) and attributes.get(CLEANUP_POLICY) == COMPACTION
