"""The journal of the consumers' deliveries and events, and the comparison with expected deliveries."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point


class DemoDelivery(NamedTuple):
    """A message handed to a listener; ``number`` is the i of its body ``Hello RocketMQ i``."""

    consumer: str
    queue: MessageQueue
    offset: int
    number: int
    at_ms: int


class PassedPoint(NamedTuple):
    """A point that a consumer passed. ``queue`` and ``offset`` are None if the point has none."""

    consumer: str
    point: Point
    at_ms: int
    queue: MessageQueue | None
    offset: int | None
    broker_address: str | None


Entry = DemoDelivery | PassedPoint


class DemoJournal:
    """Entries of all consumers in order of arrival; those of one consumer are in order of occurrence."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        # Indexes of the deliveries in ``entries``, so that counting takes no scan.
        self._delivered_at: list[int] = []

    def add(self, entry: Entry) -> None:
        """Append one entry."""
        if isinstance(entry, DemoDelivery):
            self._delivered_at.append(len(self.entries))
        self.entries.append(entry)

    def count_deliveries(self, since: int = 0) -> int:
        """Return the number of deliveries since a mark."""
        return len(self._delivered_at) - bisect_left(self._delivered_at, since)

    def mark(self) -> int:
        """Return the current end of the journal, as the start of a later look-up."""
        return len(self.entries)

    def deliveries(self, since: int = 0) -> list[DemoDelivery]:
        return [entry for entry in self.entries[since:] if isinstance(entry, DemoDelivery)]

    def events(self, since: int = 0, point: Point | None = None) -> list[PassedPoint]:
        return [
            entry
            for entry in self.entries[since:]
            if isinstance(entry, PassedPoint) and (point is None or entry.point is point)
        ]

    def start_offsets(self, since: int) -> dict[MessageQueue, int]:
        """Return the offset that QUERY_CONSUMER_OFFSET (14) returned at each queue's last take-over."""
        return {
            event.queue: event.offset
            for event in self.events(since, Point.QUEUE_ADDED)
            if event.queue is not None and event.offset is not None
        }


@dataclass(frozen=True, slots=True)
class DeliveryCounts:
    """Counts of deliveries, compared with the expected messages.

    Attributes:
        exactly_once: expected messages that were delivered exactly once.
        missing: expected messages that were not delivered.
        repeated: expected messages that were delivered more than once.
        unexpected: other messages that were delivered.
        per_queue: distinct expected messages that were delivered, by queue.
    """

    exactly_once: int
    missing: int
    repeated: int
    unexpected: int
    per_queue: dict[MessageQueue, int]


def compare(deliveries: Iterable[DemoDelivery], expected: Mapping[MessageQueue, range]) -> DeliveryCounts:
    """Compare deliveries with the expected ranges of offsets."""
    times = Counter((delivery.queue, delivery.offset) for delivery in deliveries)
    per_queue = {}
    exactly_once = repeated = 0
    for queue, offsets in sorted(expected.items()):
        counts = [times.pop((queue, offset), 0) for offset in offsets]
        per_queue[queue] = sum(count > 0 for count in counts)
        exactly_once += counts.count(1)
        repeated += sum(count > 1 for count in counts)
    total = sum(map(len, expected.values()))
    return DeliveryCounts(exactly_once, total - exactly_once - repeated, repeated, len(times), per_queue)
