"""The demo's checks find every mistake."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.cluster.demo.display import result_lines
from rewindmq.cluster.demo.expectation import lower_bound, nearest
from rewindmq.cluster.demo.journal import DemoDelivery, DemoJournal, Entry, PassedPoint, compare
from rewindmq.cluster.demo.report import DemoReport, Figure
from rewindmq.cluster.demo.timeline import AdminStep, build_timeline
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

A = MessageQueue("T", "broker-a", 0)
B = MessageQueue("T", "broker-b", 0)
TIMES = [100, 200, 200, 200, 300, 400]


# The worked example of docs/spec/broker.md B.10; no entry has one of these timestamps.
@pytest.mark.parametrize(
    ("timestamp", "old", "new"), [(50, 0, 0), (240, 3, 4), (250, 3, 4), (260, 4, 4), (500, 5, 6)]
)
def test_both_search_rules_give_the_targets_of_the_specification(timestamp: int, old: int, new: int) -> None:
    assert (nearest(TIMES, timestamp), lower_bound(TIMES, timestamp)) == (old, new)


def test_a_search_in_an_empty_queue_gives_0() -> None:
    assert (nearest([], 5), lower_bound([], 5)) == (0, 0)


def deliver(
    queue: MessageQueue, *offsets: int, consumer: str = "consumer-1", at_ms: int = 0
) -> list[DemoDelivery]:
    return [DemoDelivery(consumer, queue, offset, 0, at_ms) for offset in offsets]


def test_each_kind_of_wrong_delivery_is_counted() -> None:
    deliveries = [*deliver(A, 0, 1, 1, 3), *deliver(B, 5, 5, 6)]
    result = compare(deliveries, {A: range(3), B: range(5, 7)})
    assert result.exactly_once == 2
    assert result.repeated == 2
    assert result.missing == 1
    assert result.unexpected == 1
    assert result.per_queue == {A: 2, B: 2}


@settings(derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 9))),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_the_counts_always_add_up(pairs: list[tuple[MessageQueue, int]], start: int, end: int) -> None:
    expected = {A: range(start, 10), B: range(end)}
    result = compare([DemoDelivery("c", queue, offset, 0, 0) for queue, offset in pairs], expected)
    total = sum(map(len, expected.values()))
    assert result.exactly_once + result.repeated + result.missing == total
    wanted = {(queue, offset) for queue, offsets in expected.items() for offset in offsets}
    assert result.unexpected == len(set(pairs) - wanted)
    assert sum(result.per_queue.values()) == len(set(pairs) & wanted)


def event(
    point: Point,
    at_ms: int,
    queue: MessageQueue | None = None,
    *,
    offset: int | None = None,
    address: str | None = None,
    consumer: str = "consumer-1",
) -> PassedPoint:
    return PassedPoint(consumer, point, at_ms, queue, offset, address)


def test_the_stored_offset_is_that_of_the_last_take_over() -> None:
    journal = DemoJournal()
    journal.add(event(Point.QUEUE_ADDED, 1, A, offset=9))
    journal.add(event(Point.QUEUE_ADDED, 2, A, offset=4))
    journal.add(event(Point.QUEUE_ADDED, 3, B, offset=0))
    assert journal.start_offsets(0) == {A: 4, B: 0}
    assert journal.start_offsets(2) == {B: 0}


def test_deliveries_are_counted_from_any_mark() -> None:
    journal = DemoJournal()
    journal.add(event(Point.SUSPENDED, 1))
    for delivery in deliver(A, 0, 1, 2):
        journal.add(delivery)
        journal.add(event(Point.RESUMED, 2))
    for mark in range(8):
        assert journal.count_deliveries(mark) == len(journal.deliveries(mark))


def test_a_timeline_separates_the_notifications_of_two_brokers() -> None:
    entries: list[Entry] = [
        event(Point.RESET_NOTIFICATION_RECEIVED, 1002, address="host:1"),
        event(Point.SUSPENDED, 1003),
        event(Point.QUEUE_DROPPED, 1004, A),
        event(Point.RESET_NOTIFICATION_RECEIVED, 1005, address="host:2"),
        # A commit of the 5 s timer, before the reset's own commit.
        event(Point.COMMIT_SENT, 1500, A),
        event(Point.WAIT_OVER, 11003),
        event(Point.OFFSET_APPLIED, 11004, A),
        event(Point.COMMIT_SENT, 11005, A),
        event(Point.QUEUE_REMOVED, 11006, A),
        event(Point.RESUMED, 11007),
        event(Point.REBALANCED, 11008),
        *deliver(A, 0, at_ms=11010),
        event(Point.SUSPENDED, 11011),
        *deliver(A, 1, at_ms=11012),
        event(Point.WAIT_OVER, 21011),
        event(Point.RESUMED, 21012),
        event(Point.REBALANCED, 21013),
    ]
    names = {"host:1": "broker-a", "host:2": "broker-b"}
    timeline = build_timeline(1000, [AdminStep("route", 1001)], entries, names)
    assert timeline.admin == [AdminStep("route", 1)]
    first, second = timeline.notifications
    assert (first.broker, first.queues, first.wait_ms) == ("broker-a", 1, 10_000)
    assert first.steps == {
        "notification received": 2,
        "suspended": 3,
        "queues dropped": 4,
        "wait over": 10_003,
        "offsets applied": 10_004,
        "offsets persisted": 10_005,
        "queues removed": 10_006,
        "resumed": 10_007,
        "rebalanced": 10_008,
        "first redelivery": 10_010,
        "last redelivery": 10_012,
    }
    assert (second.broker, second.queues, second.wait_ms) == ("broker-b", 0, 10_000)
    assert second.steps == {
        "notification received": 5,
        "suspended": 10_011,
        "wait over": 20_011,
        "resumed": 20_012,
        "rebalanced": 20_013,
    }


def test_a_wrong_figure_fails_the_report_and_is_named() -> None:
    right = [Figure("send", "acknowledged", 10, 10), Figure("wait", "ms", 10, 11, at_least=True)]
    assert not DemoReport({}).is_ok
    assert DemoReport({}, figures=right).is_ok
    report = DemoReport({}, figures=[*right, Figure("consume", "delivered exactly once", 10, 9)])
    assert not report.is_ok
    assert report.to_json()["ok"] is False
    lines = result_lines(report)
    assert lines[-1] == "1 of 3 figures are wrong: consume: delivered exactly once"
    assert any(line.startswith("FAILED  consume") for line in lines)
    report.figures.append(Figure("wait", "ms", 10, 9, at_least=True))
    assert [figure.name for figure in report.failures()] == ["delivered exactly once", "ms"]
