"""What a store's configuration tells of a group and a topic."""

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
        saved_ms: when the offsets were written, ms; None without a file.
    """

    def __init__(self, snapshot: StoreSnapshot) -> None:
        """Raises PipelineError when a file cannot be read."""
        document = snapshot.config(OFFSETS_FILE)
        self._offsets = _tables(document, "offsetTable")
        self._epochs = _tables(document, "epochTable")
        entry = snapshot.files.entry(f"{snapshot.root}/config/{OFFSETS_FILE}")
        self.saved_ms = None if entry is None or not entry.mtime_ms else entry.mtime_ms
        self._topics = _table(snapshot.config(_TOPICS_FILE), "topicConfigTable")
        self._groups = _table(snapshot.config(_GROUPS_FILE), "subscriptionGroupTable")
        self._queue_topics = {queue.topic for queue in snapshot.queues()}

    def offsets(self, group: str, topic: str) -> Mapping[int, int]:
        """Queue to stored offset."""
        return self._offsets.get(f"{topic}@{group}", {})

    def has_epochs(self, group: str, topic: str) -> bool:
        """Whether a queue was ever reset in fenced mode."""
        return bool(self._epochs.get(f"{topic}@{group}"))

    def groups(self) -> set[str]:
        """Every group that is configured, or has an offset."""
        # A key with a second @ belongs to nobody, as in RocketMQ.
        pairs = (key.split("@") for key in self._offsets)
        return {pair[1] for pair in pairs if len(pair) == 2} | set(self._groups)

    def topics(self) -> set[str]:
        """Every topic that is configured, or has a queue."""
        return self._queue_topics | set(self._topics)

    def topics_of(self, group: str) -> set[str]:
        """Topics in which the group has an offset."""
        return {key.rpartition("@")[0] for key in self._offsets if key.rpartition("@")[2] == group}

    def queue_count(self, topic: str) -> int:
        """The larger of readQueueNums and writeQueueNums; 0 for a topic that is not configured."""
        settings = self._topics.get(topic)
        if not isinstance(settings, Mapping):
            return 0
        counts = (settings.get("readQueueNums", 0), settings.get("writeQueueNums", 0))
        return max(count for count in counts if isinstance(count, int))


def _table(document: Mapping[str, Any], member: str) -> Mapping[str, Any]:
    table = document.get(member)
    return table if isinstance(table, Mapping) else {}


def _tables(document: Mapping[str, Any], member: str) -> dict[str, dict[int, int]]:
    try:
        return {
            key: {int(queue): int(number) for queue, number in queues.items()}
            for key, queues in _table(document, member).items()
        }
    except (AttributeError, TypeError, ValueError):
        raise PipelineError(f"{OFFSETS_FILE}: {member} is no table of queues and numbers") from None


def check_names(stores: Sequence[GroupState], group: str, topic: str) -> None:
    """See whether there is anything to plan.

    Raises:
        PipelineError: an unknown topic or group, or a group that never consumed the topic.
    """
    topics = set().union(*(store.topics() for store in stores))
    if topic not in topics:
        shown = {name for name in topics if not name.startswith("%")}
        raise PipelineError(f"unknown topic {topic!r}; {_listed('there are', shown)}")
    groups = set().union(*(store.groups() for store in stores))
    if group not in groups:
        raise PipelineError(f"unknown group {group!r}; {_listed('there are', groups)}")
    if not any(store.offsets(group, topic) for store in stores):
        consumed = set().union(*(store.topics_of(group) for store in stores))
        consumed.discard(retry_topic(group))
        rest = _listed("it has those of", consumed)
        raise PipelineError(f"group {group!r} never consumed topic {topic!r}: no offset is stored; {rest}")


def _listed(words: str, names: set[str]) -> str:
    if not names:
        return f"{words} none"
    some = sorted(names)[:_MOST_NAMED]
    more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
    return f"{words} {', '.join(some)}{more}"
