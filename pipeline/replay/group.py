"""Reads what a store's configuration has about a group and a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.protocol.names import retry_topic

OFFSETS_FILE: Final = "consumerOffset.json"
_TOPICS_FILE: Final = "topics.json"
_GROUPS_FILE: Final = "subscriptionGroup.json"
_MOST_NAMED: Final = 20


class GroupState:
    """Topics, groups and stored offsets of one store.

    Attributes:
        saved_ms: time when the offsets were written, ms; None without a file.
    """

    def __init__(self, snapshot: StoreSnapshot) -> None:
        """Read the configuration; raise PipelineError if a file is invalid."""
        document = snapshot.config(OFFSETS_FILE)
        self._offsets = _tables(document, "offsetTable")
        self._epochs = _tables(document, "epochTable")
        entry = snapshot.files.entry(f"{snapshot.root}/config/{OFFSETS_FILE}")
        self.saved_ms = None if entry is None or not entry.mtime_ms else entry.mtime_ms
        self._topics = _table(snapshot.config(_TOPICS_FILE), "topicConfigTable")
        self._groups = _table(snapshot.config(_GROUPS_FILE), "subscriptionGroupTable")
        self._queue_topics = {queue.topic for queue in snapshot.queues()}

    def offsets(self, group: str, topic: str) -> Mapping[int, int]:
        """Return the stored offset of each queue."""
        return self._offsets.get(f"{topic}@{group}", {})

    def has_epochs(self, group: str, topic: str) -> bool:
        """Whether any queue was reset in fenced mode."""
        return bool(self._epochs.get(f"{topic}@{group}"))

    def groups(self) -> set[str]:
        """Return the groups that are configured or have an offset."""
        # RocketMQ ignores a key with a second @.
        pairs = (key.split("@") for key in self._offsets)
        return {pair[1] for pair in pairs if len(pair) == 2} | set(self._groups)

    def topics(self) -> set[str]:
        """Return the topics that are configured or have a queue."""
        return self._queue_topics | set(self._topics)

    def topics_of(self, group: str) -> set[str]:
        """Return the topics in which the group has an offset."""
        return {key.rpartition("@")[0] for key in self._offsets if key.rpartition("@")[2] == group}

    def queue_count(self, topic: str) -> int:
        """Return the larger of readQueueNums and writeQueueNums; 0 for a topic that is not configured."""
        settings = self._topics.get(topic)
        if not isinstance(settings, Mapping):
            return 0
        counts = (settings.get("readQueueNums", 0), settings.get("writeQueueNums", 0))
        return max(count for count in counts if isinstance(count, int))


def _table(document: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    table = document.get(field)
    return table if isinstance(table, Mapping) else {}


def _tables(document: Mapping[str, Any], field: str) -> dict[str, dict[int, int]]:
    try:
        return {
            key: {int(queue): int(number) for queue, number in queues.items()}
            for key, queues in _table(document, field).items()
        }
    except (AttributeError, TypeError, ValueError):
        raise PipelineError(f"{OFFSETS_FILE}: {field} is not a table of queues and numbers") from None


def check_names(stores: Sequence[GroupState], group: str, topic: str) -> None:
    """Check that topic and group exist and that the group has consumed the topic.

    Raises:
        PipelineError: topic or group is unknown, or the group never consumed the topic.
    """
    topics = set().union(*(store.topics() for store in stores))
    if topic not in topics:
        shown = {name for name in topics if not name.startswith("%")}
        raise PipelineError(f"unknown topic {topic!r}; {_listed('known:', shown)}")
    groups = set().union(*(store.groups() for store in stores))
    if group not in groups:
        raise PipelineError(f"unknown group {group!r}; {_listed('known:', groups)}")
    if not any(store.offsets(group, topic) for store in stores):
        consumed = set().union(*(store.topics_of(group) for store in stores))
        consumed.discard(retry_topic(group))
        rest = _listed("it has offsets for", consumed)
        raise PipelineError(f"group {group!r} never consumed topic {topic!r}: no offset is stored; {rest}")


def _listed(words: str, names: set[str]) -> str:
    if not names:
        return f"{words} none"
    some = sorted(names)[:_MOST_NAMED]
    more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
    return f"{words} {', '.join(some)}{more}"
