"""Infers trace points from the frames of clients and brokers that record no points themselves.

A scenario waits for trace points. A program that is not RewindMQ's records none, so this module infers them
from its frames, as far as frames show them. Inferred events carry ``inferred`` and are removed from the
history before it is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.points import Point
from rewindmq.race.history import Event, History, Kind, Lab
from rewindmq.race.proxy.pattern import Form
from rewindmq.race.stage.stage import TOPIC, consumer_process

_COMMIT: Final = int(PullSysFlag.COMMIT_OFFSET)
_STATUSES: Final[Mapping[int, str]] = MappingProxyType(
    {
        ResponseCode.SUCCESS: "FOUND",
        ResponseCode.PULL_NOT_FOUND: "NO_NEW_MSG",
        ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MSG",
        ResponseCode.PULL_OFFSET_MOVED: "OFFSET_ILLEGAL",
    }
)
# Broker name and queue id; the topic is always the race's.
_Queue = tuple[str, int]
_CONSUMERS: Final = consumer_process("")


class FramePoints:
    """Reads the frames of a run in order and infers points.

    Args:
        of_consumers, of_brokers: True infers the points of consumers or brokers.
    """

    def __init__(self, *, of_consumers: bool, of_brokers: bool) -> None:
        self._of_consumers = of_consumers
        self._of_brokers = of_brokers
        self._sent: dict[_Queue, int] = {}
        self._stored: dict[_Queue, int] = {}
        # The next offset of each consumer's chain of pulls of a queue.
        self._next: dict[tuple[str, _Queue], int] = {}
        # How many chains each consumer has begun on a queue; a point gets the number of the newest chain.
        self._chains: Counter[tuple[str, _Queue]] = Counter()
        self._suspended: set[str] = set()
        self._readers: dict[tuple[str, Kind, str], Callable[[Event], Iterator[Event]]] = {
            ("PULL_MESSAGE", Lab.FRAME_SENT, Form.REQUEST): self._pull_sent,
            ("PULL_MESSAGE", Lab.FRAME_ARRIVED, Form.REQUEST): self._pull_received,
            ("PULL_MESSAGE", Lab.FRAME_ARRIVED, Form.RESPONSE): self._pull_answered,
            ("QUERY_CONSUMER_OFFSET", Lab.FRAME_SENT, Form.REQUEST): self._offset_asked,
            ("RESET_CONSUMER_CLIENT_OFFSET", Lab.FRAME_ARRIVED, Form.ONEWAY): self._notification_received,
        }
        for form in (Form.REQUEST, Form.ONEWAY):
            self._readers["UPDATE_CONSUMER_OFFSET", Lab.FRAME_SENT, form] = self._commit_sent
            self._readers["UPDATE_CONSUMER_OFFSET", Lab.FRAME_ARRIVED, form] = self._commit_received

    def read(self, event: Event) -> list[Event]:
        """Return the points that this event shows."""
        details = event.details
        if event.kind is Lab.MESSAGE_SENT:
            self._sent[details["broker_name"], details["queue_id"]] = details["offset"] + 1
            return []
        reader = self._readers.get((details.get("name", ""), event.kind, details.get("form", "")))
        if reader is None or details["fields"].get("topic", TOPIC) != TOPIC:
            return []
        return list(reader(event))

    def _point(self, event: Event, kind: Kind, queue: _Queue, **more: Any) -> Iterator[Event]:
        wanted = self._of_consumers if event.process.startswith(_CONSUMERS) else self._of_brokers
        if wanted:
            fields = event.details["fields"]
            details = {
                "group": fields.get("consumerGroup", fields.get("group")),
                "topic": TOPIC,
                "broker_name": queue[0],
                "queue_id": queue[1],
                "chain": self._chains[event.process, queue],
                "inferred": True,
                **more,
            }
            yield Event(event.at, event.process, kind, details)

    # Points of consumers.

    def _pull_sent(self, event: Event) -> Iterator[Event]:
        fields, queue = event.details["fields"], _queue(event, event.details["target"])
        offset = fields["queueOffset"]
        key = (event.process, queue)
        if self._next.get(key) != offset:
            self._next[key] = offset
            self._chains[key] += 1
            yield from self._point(event, Point.QUEUE_ADDED, queue, offset=offset)
        if fields.get("sysFlag", 0) & _COMMIT:
            progress = fields["commitOffset"]
            yield from self._point(event, Point.OFFSET_UPDATED, queue, offset=progress)
        yield from self._point(event, Point.PULL_SENT, queue, offset=offset)

    def _pull_answered(self, event: Event) -> Iterator[Event]:
        fields, queue = event.details["fields"], _queue(event, event.details["source"])
        following = fields.get("nextBeginOffset", fields.get("queueOffset", 0))
        self._next[event.process, queue] = following
        status = _STATUSES.get(event.details.get("response_code", -1))
        if status is not None:
            yield from self._point(event, Point.PULL_CALLBACK, queue, offset=following, status=status)
        for offset in fields.get("offsets", ()):
            for kind in (Point.LISTENER_CALLED, Point.LISTENER_RETURNED):
                yield from self._point(event, kind, queue, offset=offset, offsets=[offset])

    def _offset_asked(self, event: Event) -> Iterator[Event]:
        if event.process in self._suspended:
            self._suspended.discard(event.process)
            yield from self._point(event, Point.RESUMED, _queue(event, event.details["target"]))

    def _notification_received(self, event: Event) -> Iterator[Event]:
        self._suspended.add(event.process)
        targets = event.details["fields"].get("targets") or [["", 0, 0]]
        first = (targets[0][0], targets[0][1])
        yield from self._point(event, Point.RESET_NOTIFICATION_RECEIVED, first)
        yield from self._point(event, Point.SUSPENDED, first)
        for broker, queue_id, _ in targets:
            yield from self._point(event, Point.QUEUE_DROPPED, (broker, queue_id))

    def _commit_sent(self, event: Event) -> Iterator[Event]:
        queue, offset = _queue(event, event.details["target"]), event.details["fields"]["commitOffset"]
        yield from self._point(event, Point.PERSIST_TICK, queue)
        yield from self._point(event, Point.OFFSET_UPDATED, queue, offset=offset)
        yield from self._point(event, Point.COMMIT_SENT, queue, offset=offset)

    # Points of brokers.

    def _commit_received(self, event: Event) -> Iterator[Event]:
        queue, offset = _queue(event, event.process), event.details["fields"]["commitOffset"]
        stored, self._stored[queue] = self._stored.get(queue, -1), offset
        yield from self._point(event, Point.COMMIT_RECEIVED, queue, offset=offset, stored=stored)

    def _pull_received(self, event: Event) -> Iterator[Event]:
        fields, queue = event.details["fields"], _queue(event, event.process)
        if fields.get("sysFlag", 0) & _COMMIT:
            yield from self._commit_received(event)
        if fields["queueOffset"] >= self._sent.get(queue, 0):
            yield from self._point(event, Point.PULL_SUSPENDED, queue, offset=fields["queueOffset"])


def without_inferred(history: History) -> History:
    """Return the history without inferred events."""
    return History(event for event in history if not event.details.get("inferred"))


def _queue(event: Event, broker: str) -> _Queue:
    return broker, event.details["fields"].get("queueId", 0)
