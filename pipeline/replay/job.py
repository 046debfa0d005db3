"""Computes the replay plan of a reset, per queue and search mode; changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rewindmq.pipeline.engines.runner import engine_of
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.replay.bins import make_bins
from rewindmq.pipeline.replay.group import GroupState, check_names
from rewindmq.pipeline.replay.plan import (
    Bins,
    Direction,
    MessageLoad,
    Mode,
    Move,
    QueueReplay,
    ReplayPlan,
    StorePlan,
)
from rewindmq.pipeline.replay.scan import NOTHING_FOUND, QueueSpans, ReplayScan, Span, scan
from rewindmq.pipeline.replay.target import Target, find_target, is_deleted, parse_target
from rewindmq.pipeline.snapshot.queue_view import LogView, QueueView
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot, labelled, take_snapshot
from rewindmq.pipeline.spark.progress import Progress, no_progress
from rewindmq.protocol.names import retry_topic

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner

_NO_BINS: Final = Bins(0, 1, 0)


class _Store(NamedTuple):
    snapshot: StoreSnapshot
    state: GroupState


class _Queue(NamedTuple):
    """A queue before the log is read."""

    store: int
    view: QueueView
    log: LogView
    current: int | None
    position: int | None
    targets: Mapping[Mode, int]
    is_deleted: bool

    def start(self, mode: Mode) -> int:
        """Return the offset at which consuming would continue."""
        return max(self.view.min_offset, min(self.targets[mode], self.view.max_offset))

    def direction(self, mode: Mode) -> Direction:
        """Return the direction of the queue's move."""
        if self.position is None:
            return Direction.UNKNOWN
        start = self.start(mode)
        if start == self.position:
            return Direction.STAYS
        return Direction.BACK if start < self.position else Direction.AHEAD

    def span(self, mode: Mode) -> Span:
        """Return the messages that would be redelivered or skipped."""
        start = self.start(mode)
        position = start if self.position is None else self.position
        return Span(min(start, position), max(start, position))

    def time(self, offset: int) -> int | None:
        """Return the store time of a message, ms."""
        entry = self.view.entry(offset)
        time = -1 if entry is None else self.log.store_time(entry[0])
        return None if time < 0 else time


class Preparation(NamedTuple):
    """The part of a plan that needs no Spark: checked input and computed offsets."""

    group: str
    topic: str
    to: str
    target: Target
    stores: tuple[_Store, ...]
    labels: tuple[str, ...]
    queues: tuple[_Queue, ...]


def prepare(stores: Sequence[str | Path], *, group: str, topic: str, to: str) -> Preparation:
    """Check the input and compute the targets without Spark, so that wrong input fails at once.

    Args:
        stores: stores of all brokers that have the topic.
        to: target, as for ``parse_target``.

    Raises:
        PipelineError: a store is missing, topic or group is unknown, the group never consumed the topic, or
            the target is invalid.
    """
    target = parse_target(to)
    if not stores:
        raise PipelineError("no store given: pass the store or stores to plan for")
    looked_at = []
    for location in stores:
        # Read offsets before queues: on a live store, later offsets could lie beyond the queues seen.
        snapshot = take_snapshot(location)
        state = GroupState(snapshot)
        looked_at.append(_Store(take_snapshot(location), state))
    check_names([store.state for store in looked_at], group, topic)
    labels = [snapshot.name for snapshot in labelled([store.snapshot for store in looked_at])]
    queues = [
        _look_at_queue(number, store, group, topic, queue_id, target)
        for number, store in enumerate(looked_at)
        for queue_id in _queue_ids(store, group, topic)
    ]
    return Preparation(group, topic, to.strip(), target, tuple(looked_at), tuple(labels), tuple(queues))


def _queue_ids(store: _Store, group: str, topic: str) -> list[int]:
    ids = {queue.queue_id for queue in store.snapshot.queues() if queue.topic == topic}
    ids |= set(range(store.state.queue_count(topic)))
    return sorted(ids | set(store.state.offsets(group, topic)))


def _look_at_queue(
    number: int, store: _Store, group: str, topic: str, queue_id: int, target: Target
) -> _Queue:
    view = QueueView(store.snapshot, store.snapshot.queue(topic, queue_id))
    log = LogView(store.snapshot)
    stored = store.state.offsets(group, topic).get(queue_id, -1)
    current = stored if stored >= 0 else None
    position = None if current is None else max(view.min_offset, min(current, view.max_offset))
    targets = {mode: find_target(target, mode, view, log) for mode in Mode}
    return _Queue(number, view, log, current, position, targets, is_deleted(target, view, log))


def replay_plan(
    runner: Runner,
    stores: Sequence[str | Path],
    *,
    group: str,
    topic: str,
    to: str,
    progress: Progress = no_progress,
) -> ReplayPlan:
    """Return what a reset of ``group`` in ``topic`` would redeliver; change nothing.

    Args:
        runner: a Spark session, or the local engine.
        stores: stores of all brokers that have the topic.
        to: target, as for ``parse_target``.

    Raises:
        PipelineError: see ``prepare``.
    """
    return carry_out(runner, prepare(stores, group=group, topic=topic, to=to), progress=progress)


def carry_out(runner: Runner, prepared: Preparation, *, progress: Progress = no_progress) -> ReplayPlan:
    """Read the affected messages and complete the plan."""
    bins = _bins(prepared.queues)
    concerned = [queue for queue in prepared.queues if any(_size(queue.span(mode)) for mode in Mode)]
    found = NOTHING_FOUND
    if concerned:
        count = sum(max(_size(queue.span(mode)) for mode in Mode) for queue in concerned)
        progress(f"reading {count:,} messages of {len(concerned)} queues")
        found = scan(
            engine_of(runner),
            [store.snapshot.location for store in prepared.stores],
            prepared.topic,
            [_spans(queue) for queue in concerned],
            {
                (queue.store, queue.view.queue_id, mode): queue.direction(mode) is Direction.AHEAD
                for queue in concerned
                for mode in Mode
            },
            bins,
        )
    plans = tuple(_queue_plan(queue, found) for queue in prepared.queues)
    return ReplayPlan(
        prepared.group,
        prepared.topic,
        prepared.to,
        prepared.target.timestamp,
        prepared.target.offset,
        _store_plans(prepared),
        plans,
        {mode: _total(plans, mode, Direction.BACK, found) for mode in Mode},
        {mode: _total(plans, mode, Direction.AHEAD, found) for mode in Mode},
        bins,
        tuple(_notes(prepared)),
    )


def _size(span: Span) -> int:
    return span.stop - span.start


def _bins(queues: Iterable[_Queue]) -> Bins:
    times = [
        time
        for queue in queues
        for span in {queue.span(mode) for mode in Mode}
        if _size(span)
        for time in (queue.time(span.start), queue.time(span.stop - 1))
        if time is not None
    ]
    return make_bins(min(times), max(times)) if times else _NO_BINS


def _spans(queue: _Queue) -> QueueSpans:
    spans = {mode: queue.span(mode) for mode in Mode}
    entry = queue.view.entry(min(span.start for span in spans.values()))
    position = 0 if entry is None else entry[0]
    return QueueSpans(queue.store, queue.view.queue_id, position, queue.view.max_offset, spans)


def _queue_plan(queue: _Queue, found: ReplayScan) -> QueueReplay:
    return QueueReplay(
        queue.store,
        queue.view.queue_id,
        queue.current,
        queue.position,
        queue.view.min_offset,
        queue.view.max_offset,
        queue.is_deleted,
        "" if queue.current is not None else _without_offset(queue.view),
        {mode: _move(queue, mode, found) for mode in Mode},
    )


def _without_offset(view: QueueView) -> str:
    """Return where a group without an offset starts (docs/spec/broker.md B.9 and docs/spec/client.md C.9)."""
    if view.max_offset == 0:
        return "starts at 0: the queue is empty"
    if view.min_offset == 0:
        return (
            "starts at 0 while the queue's first message is recent, else at the consumer's ConsumeFromWhere"
            " (default: the end)"
        )
    return "starts at the consumer's ConsumeFromWhere (default: the end)"


def _move(queue: _Queue, mode: Mode, found: ReplayScan) -> Move:
    span = queue.span(mode)
    key = (queue.store, queue.view.queue_id, mode)
    load = found.loads.get(key, MessageLoad()) if _size(span) else MessageLoad()
    return Move(
        queue.targets[mode],
        queue.start(mode),
        queue.direction(mode),
        replace(load, unreadable=_size(span) - load.messages),
        queue.time(span.start) if _size(span) else None,
        queue.time(span.stop - 1) if _size(span) else None,
        found.histograms.get(key, ()) if _size(span) else (),
    )


def _total(plans: Sequence[QueueReplay], mode: Mode, direction: Direction, found: ReplayScan) -> MessageLoad:
    loads = [plan.moves[mode].load for plan in plans if plan.moves[mode].direction is direction]
    return MessageLoad(
        messages=sum(load.messages for load in loads),
        size=sum(load.size for load in loads),
        distinct_keys=found.distinct_keys.get((mode, direction is Direction.AHEAD), 0),
        without_key=sum(load.without_key for load in loads),
        superseded=sum(load.superseded for load in loads),
        unreadable=sum(load.unreadable for load in loads),
    )


def _store_plans(prepared: Preparation) -> tuple[StorePlan, ...]:
    return tuple(
        StorePlan(
            store.snapshot.location, label, store.state.saved_ms, _waiting_for_retry(store, prepared.group)
        )
        for store, label in zip(prepared.stores, prepared.labels, strict=True)
    )


def _waiting_for_retry(store: _Store, group: str) -> int:
    topic = retry_topic(group)
    waiting = 0
    for queue in store.snapshot.queues():
        if queue.topic == topic:
            view = QueueView(store.snapshot, queue)
            stored = store.state.offsets(group, topic).get(queue.queue_id, 0)
            waiting += view.max_offset - max(view.min_offset, min(stored, view.max_offset))
    return waiting


def _notes(prepared: Preparation) -> Iterable[str]:
    group, queues = prepared.group, prepared.queues
    deleted = sum(queue.is_deleted for queue in queues)
    if deleted:
        yield (
            f"The target is before the first retained message in {deleted} of {len(queues)} queues: older"
            " messages are deleted and cannot be redelivered."
        )
    without = sum(queue.current is None for queue in queues)
    if without:
        yield (
            f"{without} of {len(queues)} queues have no stored offset: a classic reset refuses the whole"
            " request, the other modes set an offset."
        )
    beyond = [queue for queue in queues if prepared.target.offset is not None and _is_beyond(queue)]
    if beyond:
        yield (
            f"The offset is outside the bounds of {len(beyond)} of {len(queues)} queues: RocketMQ 5 refuses"
            " the reset; 4.x stores the offset, and the first pull corrects it."
        )
    lost = sum(queue.current is not None and queue.current < queue.view.min_offset for queue in queues)
    if lost:
        yield f"The stored offset is before the first retained message in {lost} of {len(queues)} queues."
    if any(store.state.has_epochs(group, prepared.topic) for store in prepared.stores):
        yield "The group was reset in fenced mode before: only a reset with --mode fenced can follow."
    waiting = sum(_waiting_for_retry(store, group) for store in prepared.stores)
    if waiting:
        yield (
            f"{waiting:,} messages wait in {retry_topic(group)}: the reset does not change them, and the"
            " group receives them in addition."
        )


def _is_beyond(queue: _Queue) -> bool:
    return any(queue.start(mode) != queue.targets[mode] for mode in Mode)
