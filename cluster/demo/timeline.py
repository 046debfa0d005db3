"""When each step of one reset happened, in ms since the command was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rewindmq.cluster.demo.journal import Delivery, Entry, Event
from rewindmq.protocol.points import Point

# Steps of a consumer in their order. Of a step taken once per queue, the first time counts.
CONSUMER_STEPS: Final = {
    Point.RESET_NOTICE_RECEIVED: "220 received",
    Point.SUSPENDED: "suspended",
    Point.QUEUE_DROPPED: "queues dropped",
    Point.WAIT_OVER: "wait over",
    Point.OFFSET_APPLIED: "offsets applied",
    Point.COMMIT_SENT: "offsets persisted",
    Point.QUEUE_REMOVED: "queues removed",
    Point.RESUMED: "resumed",
    Point.REBALANCED: "rebalanced",
}
FIRST_REDELIVERY: Final = "first redelivery"
LAST_REDELIVERY: Final = "last redelivery"


class AdminStep(NamedTuple):
    """A step of the administrator's."""

    name: str
    at_ms: int


@dataclass(slots=True)
class Notice:
    """One 220 at one consumer, and what it led to.

    Attributes:
        broker: the broker that sent it.
        queues: how many of the consumer's queues it concerned.
        steps: step → ms since the command.
    """

    consumer: str
    broker: str
    queues: int = 0
    steps: dict[str, int] = field(default_factory=dict)

    @property
    def wait_ms(self) -> int | None:
        """From suspension to the end of the wait."""
        start = self.steps.get(CONSUMER_STEPS[Point.SUSPENDED])
        end = self.steps.get(CONSUMER_STEPS[Point.WAIT_OVER])
        return None if start is None or end is None else end - start


@dataclass(frozen=True, slots=True)
class Timeline:
    """One reset, from the command to the last redelivered message."""

    admin: list[AdminStep]
    notices: list[Notice]


def build_timeline(
    command_ms: int, admin: Sequence[AdminStep], entries: Sequence[Entry], broker_names: Mapping[str, str]
) -> Timeline:
    """Sort what happened since the command into steps.

    Args:
        command_ms: when the command was given, ms since the epoch.
        admin: the administrator's steps, ms since the epoch.
        entries: the journal since then.
        broker_names: address → name.
    """
    consumers = sorted({entry.consumer for entry in entries})
    notices: list[Notice] = []
    for consumer in consumers:
        own = [entry for entry in entries if entry.consumer == consumer]
        notices += _notices(consumer, command_ms, own, broker_names)
    return Timeline([AdminStep(step.name, step.at_ms - command_ms) for step in admin], notices)


def _notices(
    consumer: str, command_ms: int, entries: Sequence[Entry], broker_names: Mapping[str, str]
) -> list[Notice]:
    events = [entry for entry in entries if isinstance(entry, Event)]
    received = [event for event in events if event.point is Point.RESET_NOTICE_RECEIVED]
    notices = [
        Notice(consumer, broker_names.get(event.broker_address or "", event.broker_address or "?"))
        for event in received
    ]
    # What names no queue belongs to the notices in turn: they are carried out in the order they came.
    for point in (Point.RESET_NOTICE_RECEIVED, Point.SUSPENDED, Point.WAIT_OVER, Point.RESUMED):
        times = (event.at_ms for event in events if event.point is point)
        for notice, at_ms in zip(notices, times, strict=False):
            notice.steps[CONSUMER_STEPS[point]] = at_ms - command_ms
    for notice in notices:
        _add_queue_steps(notice, command_ms, events)
        _add_deliveries(notice, command_ms, entries)
    return notices


def _add_queue_steps(notice: Notice, command_ms: int, events: Sequence[Event]) -> None:
    own = [event for event in events if event.queue is not None and event.queue.broker_name == notice.broker]
    notice.queues = sum(event.point is Point.QUEUE_DROPPED for event in own)
    applied = None
    for event in own:
        if event.point is Point.OFFSET_APPLIED and applied is None:
            applied = event.at_ms
        # Offsets are also committed every 5 s; the reset's own commit follows the application.
        if event.point is Point.COMMIT_SENT and applied is None:
            continue
        if event.point in (
            Point.QUEUE_DROPPED,
            Point.OFFSET_APPLIED,
            Point.COMMIT_SENT,
            Point.QUEUE_REMOVED,
        ):
            notice.steps.setdefault(CONSUMER_STEPS[event.point], event.at_ms - command_ms)
    resumed = notice.steps.get(CONSUMER_STEPS[Point.RESUMED])
    if resumed is not None:
        for event in events:
            if event.point is Point.REBALANCED and event.at_ms - command_ms >= resumed:
                notice.steps[CONSUMER_STEPS[Point.REBALANCED]] = event.at_ms - command_ms
                break


def _add_deliveries(notice: Notice, command_ms: int, entries: Sequence[Entry]) -> None:
    resumed = notice.steps.get(CONSUMER_STEPS[Point.RESUMED])
    if resumed is None or not notice.queues:
        return
    times = [
        entry.at_ms - command_ms
        for entry in entries
        if isinstance(entry, Delivery)
        and entry.queue.broker_name == notice.broker
        and entry.at_ms - command_ms >= resumed
    ]
    if times:
        notice.steps[FIRST_REDELIVERY] = min(times)
        notice.steps[LAST_REDELIVERY] = max(times)
