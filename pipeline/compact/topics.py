"""Which topics a compaction touches, and what becomes of the messages of each."""

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


class Kind(IntEnum):
    """What becomes of a message, or of whatever else stands in the log."""

    # The newest of its key is kept.
    KEYED = 0
    # Kept whatever comes.
    WHOLE = 1
    # A half message: kept while no op record names it.
    HALF = 2
    # Not a message: a half message that an op record names.
    NAMED_HALF = 3
    # Without a key, and therefore not kept.
    KEYLESS = 4
    # Delivered delays and op records.
    DONE = 5
    # Of a topic that the output does not have.
    OTHER = 6
    # Prepared and rollback records, which are in no queue.
    OUTSIDE = 7
    # Not a message: a place that cannot be read.
    DAMAGE = 8
    # Of an earlier run: superseded, and kept because it was the newest of its queue.
    END = 9
    # Not intact, and left out; its place in the queue was taken all the same.
    DAMAGED = 10


class TopicRules:
    """What becomes of a topic's messages; pickles.

    Attributes:
        chosen: the topics to be compacted; None: all user topics.
        delay_offsets: per level, the first message not delivered yet.
    """

    def __init__(
        self, options: CompactOptions, chosen: Collection[str] | None, delay_offsets: Mapping[int, int]
    ) -> None:
        self.chosen = None if chosen is None else frozenset(chosen)
        self._is_store = options.format is Format.STORE
        self.delay_offsets = dict(delay_offsets)

    def is_compacted(self, topic: str) -> bool:
        """Whether of each key only the newest message is kept."""
        return is_user_topic(topic) if self.chosen is None else topic in self.chosen

    def kind_of(self, topic: str) -> Kind:
        """What its messages are, having a key and before looking closer."""
        if self.is_compacted(topic):
            return Kind.KEYED
        if not self._is_store:
            return Kind.OTHER
        if topic == TRANS_HALF_TOPIC:
            return Kind.HALF
        return Kind.DONE if topic == TRANS_OP_HALF_TOPIC else Kind.WHOLE

    def first_undelivered(self, queue_id: int) -> int:
        """Queue offset of the first delayed message of a level's queue that is still to be delivered."""
        return self.delay_offsets.get(queue_id + 1, 0)


def is_user_topic(topic: str) -> bool:
    """Whether an application's messages are in it, in their own right."""
    return not (
        is_system_topic(topic)
        or topic == SCHEDULE_TOPIC
        or topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX))
    )


def choose_topics(
    wanted: Collection[str], topics_json: Sequence[Mapping[str, Any]], known: Collection[str]
) -> frozenset[str] | None:
    """The topics to be compacted.

    Args:
        wanted: as the user named them; none: those with attribute cleanup.policy=COMPACTION.
        topics_json: those of all stores.
        known: topics that are in one of them, or have a consume queue; none: of a bare log nothing is known.

    Returns:
        None when nothing names any: all user topics.

    Raises:
        PipelineError: an unknown topic, or one of the system's.
    """
    if not wanted:
        entries = [item for table in topics_json for item in table.get(_TABLE, {}).items()]
        return (
            frozenset(topic for topic, entry in entries if is_user_topic(topic) and is_marked(entry)) or None
        )
    known = {topic for topic in known if is_user_topic(topic)}
    for topic in sorted(wanted):
        if not is_user_topic(topic):
            raise PipelineError(f"{topic} is a topic of the system's own, which no compaction may touch")
        if known and topic not in known:
            raise PipelineError(f"there is no topic {topic}; known are {', '.join(sorted(known))}")
    return frozenset(wanted)


def is_marked(entry: Any) -> bool:
    """Whether an entry of topics.json says that the topic is one of the compaction store."""
    attributes = entry.get("attributes") if isinstance(entry, Mapping) else None
    return isinstance(attributes, Mapping) and attributes.get(CLEANUP_POLICY) == COMPACTION
