"""DeletedTopic: what brokers keep of a topic that they have deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# Groups and queues that ``notes`` names.
_MOST_GROUPS: Final = 20
_MOST_QUEUES: Final = 8


@dataclass(frozen=True, slots=True)
class KeptOffsets:
    """The offsets of a group that a broker keeps after it has deleted the topic.

    RocketMQ keeps them up to 4.9. In a new topic of the same name, the group then skips the first messages of
    each queue.

    Attributes:
        broker_addr: the broker.
        offsets: by queue id; as many messages of the queue are skipped.
    """

    broker_addr: str
    group: str
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """The result of a deletion.

    Attributes:
        broker_addrs: the masters that have deleted the topic.
        kept: sorted by broker and group; without offsets of 0.
        unread: brokers that did not return their offsets, with the reason.
    """

    topic: str
    broker_addrs: list[str]
    kept: list[KeptOffsets]
    unread: Mapping[str, str]

    def notes(self) -> list[str]:
        """Return lines that say which groups skip how many messages of a new topic of the same name."""
        lines = [
            f"NOTE: {kept.broker_addr} keeps the offsets of group {kept.group}: in a new topic {self.topic}"
            f" it skips {_messages(kept.offsets)}"
            for kept in self.kept[:_MOST_GROUPS]
        ]
        if len(self.kept) > _MOST_GROUPS:
            lines.append(f"NOTE: so do {len(self.kept) - _MOST_GROUPS} more groups; --json lists them")
        if self.kept:
            lines.append(
                "NOTE: reset these groups when the topic exists again: rewindmq admin resetOffsetByTime"
                f" -t {self.topic} -s 0 -g GROUP"
            )
        return lines + [
            f"NOTE: it is unknown which groups have offsets in {self.topic} at {address}: {reason}"
            for address, reason in self.unread.items()
        ]


def _messages(offsets: Mapping[int, int]) -> str:
    parts = [
        f"the first {'message' if count == 1 else f'{count} messages'} of queue {queue_id}"
        for queue_id, count in sorted(offsets.items())[:_MOST_QUEUES]
    ]
    more = len(offsets) - len(parts)
    return ", ".join(parts) + (f", and messages of {more} more queues" if more else "")
