"""What the soak expects of each group."""

from __future__ import annotations

from dataclasses import dataclass

from tools.soak.message import DELAYED, TAGS, TRANSACTION, MessageId, is_committed, tag_of


@dataclass(frozen=True, slots=True)
class GroupRules:
    """The messages that a group must get, and how.

    Attributes:
        topics: letters of the topics subscribed to.
        tags: the tags subscribed to; None for all.
        is_orderly: queues are consumed in order, one listener at a time.
        max_reconsume_times: after so many redeliveries a refused message is a dead letter; None if the
            group's listeners refuse no message.
        is_lossy: the group is reset in classic or server mode. Their known races may skip messages that were
            pending when the reset came (``docs/reset.md``). Such losses are counted, others are violations.
    """

    name: str
    topics: str
    tags: frozenset[str] | None = None
    is_orderly: bool = False
    max_reconsume_times: int | None = None
    is_lossy: bool = False

    def wants(self, kind: str) -> bool:
        """True if messages of a kind (``kind_of``) must be delivered to the group."""
        topic, mark = kind[0], kind[1]
        if topic not in self.topics or (topic == TRANSACTION and mark == "-"):
            return False
        return self.tags is None or topic in (DELAYED, TRANSACTION) or mark in self.tags


def kind_of(topic: str, message: MessageId) -> str:
    """Return a message's kind, the topic's letter and the tag or outcome; groups treat a kind alike."""
    if topic == TRANSACTION:
        return topic + ("+" if is_committed(message) else "-")
    if topic == DELAYED:
        return topic + "*"
    return topic + tag_of(message)


assert all(len(tag) == 1 for tag in TAGS)
