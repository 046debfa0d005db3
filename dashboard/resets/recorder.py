"""Recorder: writes what a watched reset yields and shows into its record. It reads no clock."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.watched_reset.run import Began, Repair, ResetVerdict
from rewindmq.dashboard.resets.record import (
    QueueRecord,
    RecordedEvent,
    ResetRecord,
    Seen,
    SeenPosition,
    Status,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.position import Position
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.verdict.queue_watch import QueueWatch
from rewindmq.watch.verdict.reset_watch import Change, Waiting
from rewindmq.watch.verdict.states import State

# Samples of one queue that a record keeps, and of all its queues. A queue has room for some in any case.
MAX_SEEN: Final = 240
MAX_ALL_SEEN: Final = 8_000
_LEAST_SEEN: Final = 8
MAX_EVENTS: Final = 4_000
# Consumers report a queue to the brokers under many ids only if something is wrong.
_MAX_POSITIONS: Final = 8
# The redelivery has not begun: what a consumer holds may be of before the reset.
_NOT_BEGUN: Final = frozenset({State.ACCEPTED, State.STORED})


class ResetRecorder:
    """Fills a record, which pages may show at any time."""

    def __init__(self, record: ResetRecord) -> None:
        self._record = record
        self._queues: dict[MessageQueue, QueueRecord] = {}
        self._began = 0.0
        self._room = MAX_SEEN

    def add(self, item: Began | Change | Waiting | Repair | ResetVerdict, now: float) -> None:
        """Take in an item of ``run_watched``.

        Args:
            now: monotonic protocol seconds.
        """
        if isinstance(item, Began):
            self._begin(item)
        elif isinstance(item, Change):
            self._change(item.watch, now - self._began)
        elif isinstance(item, Waiting):
            self._wait(item)
        elif isinstance(item, Repair):
            self._repair(item, now - self._began)
        else:
            self._record.status = Status(str(item.state))
            self._record.repairs = item.repairs

    def observe(self, sample: Sample) -> None:
        """Take in a sample."""
        # The sample right before the reset counts as one of its moment.
        at = max(0.0, sample.at - self._began)
        for queue, seen in sample.queues.items():
            row = self._queues.get(queue)
            if row is not None:
                self._see(row, at, seen)

    def _begin(self, began: Began) -> None:
        self._began = began.at
        self._record.modes = dict(began.modes)
        for watch in sorted(began.queues, key=lambda each: each.queue):
            row = QueueRecord(
                watch.queue.broker_name, watch.queue.queue_id, watch.old, watch.target, watch.state
            )
            self._queues[watch.queue] = row
            self._record.queues.append(row)
        self._record.count()
        self._record.evidence = [str(outlook) for outlook in began.outlooks]
        self._room = max(_LEAST_SEEN, min(MAX_SEEN, MAX_ALL_SEEN // max(1, len(self._queues))))
        self.observe(began.before)
        self._note(0.0, "reset", f"the brokers accepted the reset; queues: {len(self._queues)}")

    def _wait(self, waiting: Waiting) -> None:
        self._record.passed, self._record.left = round(waiting.seconds, 1), round(waiting.left, 1)
        for watch in waiting.open:
            self._queues[watch.queue].waits_for = watch.waits_for

    def _change(self, watch: QueueWatch, at: float) -> None:
        row = self._queues[watch.queue]
        row.waits_for = watch.waits_for
        self._record.change(row, watch.state)
        row.target, row.since = watch.target, round(at, 1)
        row.reason, row.races = watch.reason or watch.proof, watch.races
        text = f"stored {'unknown' if watch.stored is None else watch.stored}, target {watch.target}"
        self._note(at, row.state, f"{text}: {watch.reason}" if watch.reason else text, row.name)

    def _repair(self, repair: Repair, at: float) -> None:
        names = ", ".join(f"{queue.broker_name}/{queue.queue_id}" for queue in repair.queues)
        if repair.failure is not None:
            self._note(at, "repair", f"{names} cannot be reset again: {repair.failure}")
            return
        self._record.repairs = repair.number
        self._note(at, "repair", f"reset {names} again")
        for queue in repair.queues:
            row = self._queues[queue]
            self._record.change(row, State.ACCEPTED)
            row.since, row.reason, row.races = round(at, 1), "", ()

    def _see(self, row: QueueRecord, at: float, seen: QueueSample) -> None:
        if seen.stored is not None:
            row.stored = seen.stored
        row.consumer = next((position.client_id for position in seen.live), None)
        old = next((position for position in seen.positions if _is_old(row, position)), None)
        row.holder, row.held_from = (None, None) if old is None else (old.client_id, old.first)
        shown = Seen(round(at, 3), seen.stored, tuple(map(_shown, seen.positions[:_MAX_POSITIONS])))
        last = row.seen[-1] if row.seen else None
        if last is not None and (last.stored, last.positions) == (shown.stored, shown.positions):
            return
        if len(row.seen) < self._room:
            row.seen.append(shown)
        else:
            row.is_cut = True

    def _note(self, at: float, kind: str, text: str, queue: str = "") -> None:
        if len(self._record.events) < MAX_EVENTS:
            self._record.events.append(RecordedEvent(round(at, 3), kind, text, queue))
        else:
            self._record.is_cut = True


def _is_old(row: QueueRecord, position: Position) -> bool:
    """Return True if the consumer holds messages that it got before the reset."""
    if position.first is None or row.state not in _NOT_BEGUN:
        return False
    return position.first >= row.before if row.target < row.before else position.first < row.target


def _shown(position: Position) -> SeenPosition:
    holds = position.first is not None
    low = position.offset if position.first is None else position.first
    return SeenPosition(position.client_id, low, holds, position.dropped)
