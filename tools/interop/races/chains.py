"""Assigns each pull to its ProcessQueue: neither the frames nor the client's table of queues say which it is.

Each ProcessQueue has one chain of pulls. The chain begins at the queue's first offset, and goes on at the
offset that the last answer returned. So when a run is over, pulls are assigned to the ProcessQueues that the
consumer had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.points import Point
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.stage.stage import GROUP, TOPIC, reader_process

PULLS: Final = ("PULL_MESSAGE", "LITE_PULL_MESSAGE")
STATUSES: Final[Mapping[int, str]] = MappingProxyType(
    {
        ResponseCode.SUCCESS: "FOUND",
        ResponseCode.PULL_NOT_FOUND: "NO_NEW_MSG",
        ResponseCode.PULL_RETRY_IMMEDIATELY: "NO_MATCHED_MSG",
        ResponseCode.PULL_OFFSET_MOVED: "OFFSET_ILLEGAL",
    }
)
# A pull may be recorded so many seconds before the driver's watcher finds its queue in the client's table.
_SEEN_LATE: Final = 1.0
_READERS: Final = reader_process("")
ONLY_CHAIN: Final = 1
# Process, broker name, queue id.
_Place = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class _Queue:
    """One ProcessQueue and the state of its chain of pulls."""

    chain: int
    added: float
    first: int
    dropped: float = float("inf")
    following: int | None = None
    is_waiting: bool = False
    latest: float = 0.0


def with_chains(events: Iterable[Event]) -> History:
    """Return the history with every pull, and every answer to a pull, as a point of its ProcessQueue."""
    known = list(events)
    assigned = _Assignment(known)
    history = History(known)
    for event in known:
        for point in assigned.read(event):
            history.add(point)
    return history


class _Assignment:
    def __init__(self, events: Iterable[Event]) -> None:
        self._queues: dict[_Place, list[_Queue]] = defaultdict(list)
        for event in events:
            details = event.details
            if details.get("topic") != TOPIC:
                continue
            if event.kind is Point.QUEUE_ADDED:
                queue = _Queue(details["chain"], event.at, details["offset"])
                self._queues[_place(event.process, details)].append(queue)
            elif event.kind is Point.QUEUE_DROPPED:
                for queue in self._queues[_place(event.process, details)]:
                    if queue.chain == details["chain"]:
                        queue.dropped = event.at

    def read(self, event: Event) -> Iterator[Event]:
        """Yield the points that a frame shows."""
        details = event.details
        if event.kind in (Lab.PROCESS_KILLED, Lab.PROCESS_STARTED):
            self._forget_pulls(event.process)
        if details.get("name") not in PULLS or details["fields"].get("topic") != TOPIC:
            return
        is_answer = details["form"] == "response"
        if event.kind is Lab.FRAME_SENT and not is_answer:
            yield from self._sent(event)
        elif event.kind is Lab.FRAME_ARRIVED and is_answer:
            yield from self._answered(event)
        elif event.kind is Lab.FRAME_DROPPED:
            client, broker = details["source"], details["target"]
            if is_answer:
                client, broker = broker, client
            queue = self._waiting(client, broker, details["fields"])
            if queue is not None:
                queue.is_waiting = False

    def _sent(self, event: Event) -> Iterator[Event]:
        fields, broker = event.details["fields"], event.details["target"]
        offset = fields["queueOffset"]
        place = (event.process, broker, fields["queueId"])
        if event.process.startswith(_READERS) and place not in self._queues:
            # A lite pull consumer cannot be inspected; it has one chain for each queue.
            self._queues[place].append(_Queue(ONLY_CHAIN, 0.0, offset))
        queues = self._queues.get(place, [])
        queue = _choose([queue for queue in queues if queue.dropped > event.at], offset, event.at)
        if queue is not None:
            queue.following, queue.is_waiting, queue.latest = offset, True, event.at
            yield _point(event, Point.PULL_SENT, broker, queue, offset)

    def _answered(self, event: Event) -> Iterator[Event]:
        fields, broker = event.details["fields"], event.details["source"]
        queue = self._waiting(event.process, broker, fields)
        if queue is None:
            return
        queue.is_waiting = False
        status = STATUSES.get(event.details["response_code"])
        if status is not None:
            queue.following = fields["nextBeginOffset"]
            more = {"status": status, "offsets": fields.get("offsets", [])}
            yield _point(event, Point.PULL_CALLBACK, broker, queue, queue.following, **more)

    def _waiting(self, client: str, broker: str, fields: Mapping[str, Any]) -> _Queue | None:
        queues = [
            queue
            for queue in self._queues.get((client, broker, fields["queueId"]), [])
            if queue.is_waiting and queue.following == fields["queueOffset"]
        ]
        return min(queues, key=lambda queue: queue.latest, default=None)

    def _forget_pulls(self, process: str) -> None:
        for place, queues in self._queues.items():
            if process in place:
                for queue in queues:
                    queue.is_waiting = False


def _choose(living: list[_Queue], offset: int, at: float) -> _Queue | None:
    """Return the ProcessQueue that a pull belongs to.

    It is the one whose chain goes on at ``offset``, else one that begins there, else the one that pulled
    last.
    """
    going_on = [queue for queue in living if not queue.is_waiting and queue.following == offset]
    if going_on:
        return max(going_on, key=lambda queue: queue.latest)
    new = [queue for queue in living if queue.following is None and queue.added < at + _SEEN_LATE]
    beginning = [queue for queue in new if queue.first == offset] or new
    if beginning:
        return min(beginning, key=lambda queue: queue.added)
    begun = [queue for queue in living if queue.following is not None]
    return max(begun, key=lambda queue: (not queue.is_waiting, queue.latest), default=None)


def _point(event: Event, kind: Point, broker: str, queue: _Queue, offset: int, **more: Any) -> Event:
    details = {
        "group": GROUP,
        "topic": TOPIC,
        "broker_name": broker,
        "queue_id": event.details["fields"]["queueId"],
        "chain": queue.chain,
        "offset": offset,
        **more,
    }
    return Event(event.at, event.process, kind, details)


def _place(process: str, details: Mapping[str, Any]) -> _Place:
    return process, details["broker_name"], details["queue_id"]
