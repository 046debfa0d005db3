"""The times of one reset's steps, in ms since the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rewindmq.cluster.demo.journal import DemoDelivery, Entry, PassedPoint
from rewindmq.protocol.points import Point

# Steps of a consumer in their order. If a step happens once for each queue, the first time counts.
CONSUMER_STEPS: Final = {
    Point.RESET_NOTIFICATION_RECEIVED: "notification received",
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
    """A step of the admin client."""

    name: str
    at_ms: int


@dataclass(slots=True)
class ResetNotification:
    """One reset notification (RESET_CONSUMER_CLIENT_OFFSET, 220) at one consumer, and the steps that follow.

    Attributes:
        broker: the broker that sent the notification.
        queues: number of the consumer's queues that the notification resets.
        steps: step → ms since the command.
    """

    consumer: str
    broker: str
    queues: int = 0
    steps: dict[str, int] = field(default_factory=dict)

    @property
    def wait_ms(self) -> int | None:
        """Ms from the suspension to the end of the wait."""
        start = self.steps.get(CONSUMER_STEPS[Point.SUSPENDED])
        end = self.steps.get(CONSUMER_STEPS[Point.WAIT_OVER])
        return None if start is None or end is None else end - start


@dataclass(frozen=True, slots=True)
class Timeline:
    """One reset, from the command to the last redelivered message."""

    admin: list[AdminStep]
    notifications: list[ResetNotification]


def build_timeline(
    command_ms: int, admin: Sequence[AdminStep], entries: Sequence[Entry], broker_names: Mapping[str, str]
) -> Timeline:
    """Build the timeline of a reset from the admin client's steps and the consumers' journal.

    Args:
        command_ms: time of the command, ms since the epoch.
        admin: the admin client's steps, ms since the epoch.
        entries: the journal since the command.
        broker_names: address → name.
    """
    consumers = sorted({entry.consumer for entry in entries})
    notifications: list[ResetNotification] = []
    for consumer in consumers:
        own = [entry for entry in entries if entry.consumer == consumer]
        notifications += _notifications(consumer, command_ms, own, broker_names)
    return Timeline([AdminStep(step.name, step.at_ms - command_ms) for step in admin], notifications)


def _notifications(
    consumer: str, command_ms: int, entries: Sequence[Entry], broker_names: Mapping[str, str]
) -> list[ResetNotification]:
    events = [entry for entry in entries if isinstance(entry, PassedPoint)]
    received = [event for event in events if event.point is Point.RESET_NOTIFICATION_RECEIVED]
    notifications = [
        ResetNotification(consumer, broker_names.get(event.broker_address or "", event.broker_address or "?"))
        for event in received
    ]
    # These points name no queue. A consumer applies notifications in the order of their arrival, so the nth
    # event of each point belongs to the nth notification.
    for point in (Point.RESET_NOTIFICATION_RECEIVED, Point.SUSPENDED, Point.WAIT_OVER, Point.RESUMED):
        times = (event.at_ms for event in events if event.point is point)
        for notification, at_ms in zip(notifications, times, strict=False):
            notification.steps[CONSUMER_STEPS[point]] = at_ms - command_ms
    for notification in notifications:
        _add_queue_steps(notification, command_ms, events)
        _add_deliveries(notification, command_ms, entries)
    return notifications


def _add_queue_steps(notification: ResetNotification, command_ms: int, events: Sequence[PassedPoint]) -> None:
    own = [
        event
        for event in events
        if event.queue is not None and event.queue.broker_name == notification.broker
    ]
    notification.queues = sum(event.point is Point.QUEUE_DROPPED for event in own)
    applied = None
    for event in own:
        if event.point is Point.OFFSET_APPLIED and applied is None:
            applied = event.at_ms
        # The 5 s timer commits, too. The reset's own commit comes after its offset is applied.
        if event.point is Point.COMMIT_SENT and applied is None:
            continue
        if event.point in (
            Point.QUEUE_DROPPED,
            Point.OFFSET_APPLIED,
            Point.COMMIT_SENT,
            Point.QUEUE_REMOVED,
        ):
            notification.steps.setdefault(CONSUMER_STEPS[event.point], event.at_ms - command_ms)
    resumed = notification.steps.get(CONSUMER_STEPS[Point.RESUMED])
    if resumed is not None:
        for event in events:
            if event.point is Point.REBALANCED and event.at_ms - command_ms >= resumed:
                notification.steps[CONSUMER_STEPS[Point.REBALANCED]] = event.at_ms - command_ms
                break


def _add_deliveries(notification: ResetNotification, command_ms: int, entries: Sequence[Entry]) -> None:
    resumed = notification.steps.get(CONSUMER_STEPS[Point.RESUMED])
    if resumed is None or not notification.queues:
        return
    times = [
        entry.at_ms - command_ms
        for entry in entries
        if isinstance(entry, DemoDelivery)
        and entry.queue.broker_name == notification.broker
        and entry.at_ms - command_ms >= resumed
    ]
    if times:
        notification.steps[FIRST_REDELIVERY] = min(times)
        notification.steps[LAST_REDELIVERY] = max(times)
