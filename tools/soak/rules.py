"""What each group of the soak is promised."""

from __future__ import annotations

from dataclasses import dataclass

from tools.soak.message import DELAYED, TAGS, TRANSACTION, MessageId, is_committed, tag_of


@dataclass(frozen=True, slots=True)
class GroupRules:
    """Attributes:
    topics: letters of the topics subscribed to.
    tags: which tags it gets; None: all.
    is_orderly: queues are consumed in order, one listener at a time.
    max_reconsume_times: after so many redeliveries a refused message is a dead letter; None: its listeners
        refuse nothing.
    is_lossy: reset in classic or server mode, whose known races may skip messages that were pending when the
        reset came (``docs/reset.md``); such losses are counted, others are violations.
    """

    name: str
    topics: str
    tags: frozenset[str] | None = None
    is_orderly: bool = False
    max_reconsume_times: int | None = None
    is_lossy: bool = False

    def wants(self, kind: str) -> bool:
        """Whether messages of a kind (``kind_of``) have to be delivered to it."""
        topic, mark = kind[0], kind[1]
        if topic not in self.topics or (topic == TRANSACTION and mark == "-"):
            return False
        return self.tags is None or topic in (DELAYED, TRANSACTION) or mark in self.tags


def kind_of(topic: str, message: MessageId) -> str:
    """Messages of one kind are promised the same: the topic's letter, then the tag or the outcome."""
    if topic == TRANSACTION:
        return topic + ("+" if is_committed(message) else "-")
    if topic == DELAYED:
        return topic + "*"
    return topic + tag_of(message)


assert all(len(tag) == 1 for tag in TAGS)
