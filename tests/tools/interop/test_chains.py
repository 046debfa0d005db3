"""Pulls are assigned to the ProcessQueues that sent them."""

from __future__ import annotations

from typing import Any

from rewindmq.protocol.points import Point
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.stage.stage import BROKER, TOPIC
from tools.interop.races.chains import with_chains

_A = "consumer-A"
_NOT_FOUND = 19


def _queue(at: float, kind: Point, chain: int, offset: int) -> Event:
    place = {"topic": TOPIC, "broker_name": BROKER, "queue_id": 0}
    return Event(at, _A, kind, {**place, "chain": chain, "offset": offset})


def _frame(at: float, kind: Lab, form: str, offset: int, **more: Any) -> Event:
    source, target = (BROKER, _A) if form == "response" else (_A, BROKER)
    fields = {"topic": TOPIC, "queueId": 0, "queueOffset": offset}
    following = more.pop("following", None)
    if following is not None:
        fields["nextBeginOffset"] = following
    process = source if kind is Lab.FRAME_SENT else target
    details = {"name": "PULL_MESSAGE", "source": source, "target": target, "form": form, "fields": fields}
    return Event(at, process, kind, {**details, **more})


def _sent(at: float, offset: int) -> Event:
    return _frame(at, Lab.FRAME_SENT, "request", offset)


def _answered(at: float, offset: int, following: int, code: int = 0) -> Event:
    more = {"following": following, "response_code": code, "offsets": list(range(offset, following))}
    return _frame(at, Lab.FRAME_ARRIVED, "response", offset, **more)


def _seen(history: History) -> list[tuple[Point | Lab, int, int]]:
    points = history.of(Point.PULL_SENT, Point.PULL_CALLBACK)
    return [(event.kind, event.details["chain"], event.details["offset"]) for event in points]


def test_a_late_answer_belongs_to_the_dropped_queue_that_pulled() -> None:
    """R1: the new ProcessQueue has reached the same offset when the old one's pull is answered."""
    history = with_chains(
        [
            _queue(0.0, Point.QUEUE_ADDED, 1, 3),
            _sent(0.1, 3),
            _queue(1.0, Point.QUEUE_DROPPED, 1, 3),
            _queue(11.0, Point.QUEUE_ADDED, 2, 0),
            _sent(11.1, 0),
            _answered(11.2, 0, 3),
            _sent(11.3, 3),
            _answered(15.0, 3, 3, _NOT_FOUND),
            _answered(20.0, 3, 4),
        ]
    )
    assert _seen(history) == [
        (Point.PULL_SENT, 1, 3),
        (Point.PULL_SENT, 2, 0),
        (Point.PULL_CALLBACK, 2, 3),
        (Point.PULL_SENT, 2, 3),
        (Point.PULL_CALLBACK, 1, 3),
        (Point.PULL_CALLBACK, 2, 4),
    ]


def test_a_zombies_pull_is_assigned_by_the_offset_where_its_queue_began() -> None:
    """R4: one consumer has two live ProcessQueues for a queue."""
    history = with_chains(
        [
            _queue(0.0, Point.QUEUE_ADDED, 1, 6),
            _queue(10.0, Point.QUEUE_ADDED, 2, 0),
            _sent(10.1, 0),
            _sent(10.5, 6),
        ]
    )
    assert _seen(history) == [(Point.PULL_SENT, 2, 0), (Point.PULL_SENT, 1, 6)]


def test_a_pull_recorded_before_its_queue_is_assigned_to_that_queue() -> None:
    history = with_chains([_sent(0.99, 0), _queue(1.0, Point.QUEUE_ADDED, 1, 0)])
    assert _seen(history) == [(Point.PULL_SENT, 1, 0)]


def test_a_pull_sent_again_stays_in_its_chain() -> None:
    """After a refusal or a lost connection, no answer says at which offset the chain goes on."""
    history = with_chains([_queue(0.0, Point.QUEUE_ADDED, 1, 5), _sent(0.1, 5), _sent(3.1, 5)])
    assert [chain for _, chain, _ in _seen(history)] == [1, 1]
