"""The race laboratory's drawing of one queue of a watched reset, from what the samples showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import msgspec

from rewindmq.dashboard.resets.record import QueueRecord, RecordedEvent, ResetRecord, Seen, SeenPosition
from rewindmq.race.checker import ProgressChange
from rewindmq.race.report.drawing import Drawing
from rewindmq.race.report.scene import Arrow, DrawnDelivery, DrawnStep, Offence, Scene, Tone
from rewindmq.race.report.style import PALETTE, PICTURE
from rewindmq.watch.verdict.states import State

_DASHBOARD: Final = "dashboard"
_MAX_CONSUMERS: Final = 6
# More than the items of a drawing.
_SAME_TIME: Final = 100_000
# Client ids are longer than a lane's name may be.
_CONSUMER: Final = "consumer {}"
_VERDICTS: Final = frozenset({str(State.PROVEN), str(State.LOST), str(State.UNKNOWN)})


@dataclass(frozen=True)
class Lanes:
    """A drawing.

    Attributes:
        html: SVG in HTML; every text is escaped.
        consumers: client id of each consumer's lane, by the lane's name.
        is_cut: what was seen later is not drawn.
    """

    html: str
    consumers: dict[str, str]
    is_cut: bool


def style_sheet() -> str:
    """Return the style of the drawings, for elements inside ``.figure``."""
    return f"{PALETTE}\n.figure{{{PICTURE}}}\n".replace(":root", ".figure")


def draw_queue(record: ResetRecord, queue: QueueRecord) -> Lanes | None:
    """Return lanes of the dashboard, the broker and the consumers above the offsets; None if none was seen.

    It takes up to 60 ms: draw a ``copied`` record in a thread.
    """
    if not queue.seen:
        return None
    builder = _Builder(record, queue)
    drawing = Drawing(builder.build()).html()
    return Lanes(drawing, {name: client for client, name in builder.names.items()}, queue.is_cut)


def copied(record: ResetRecord, queue: QueueRecord) -> tuple[ResetRecord, QueueRecord]:
    """Return what ``draw_queue`` needs as it is now; the watch goes on to change the originals."""
    return (
        msgspec.structs.replace(record, events=list(record.events), queues=[]),
        msgspec.structs.replace(queue, seen=list(queue.seen)),
    )


@dataclass
class _Held:
    """Messages in a consumer's memory, from the sample that first showed them."""

    since: float
    low: int


@dataclass
class _Builder:
    record: ResetRecord
    queue: QueueRecord
    names: dict[str, str] = field(default_factory=dict)
    _scene: Scene = field(default_factory=Scene)
    _count: Iterator[int] = field(default_factory=count)
    _held: dict[str, _Held] = field(default_factory=dict)
    # The consumers' latest offsets, and those of them that have the queue.
    _lows: dict[str, int] = field(default_factory=dict)
    _owners: set[str] = field(default_factory=set)

    def build(self) -> Scene:
        queue, scene = self.queue, self._scene
        for seen in queue.seen:
            for position in seen.positions:
                self._name(position.client_id)
        scene.lanes = [_DASHBOARD, queue.broker_name, *self.names.values()]
        scene.broker_name, scene.queue_id, scene.target = queue.broker_name, queue.queue_id, queue.target
        scene.end = max(queue.seen[-1].at, *(event.at for event in self.record.events), 0.0)
        for event in self.record.events:
            self._draw_event(event)
        self._draw_stored()
        for seen in queue.seen:
            self._draw_sample(seen)
        for client, held in self._held.items():
            self._deliver(client, held, None)
        scene.moments = tuple(self._moments())
        return scene

    def _name(self, client: str) -> None:
        if client not in self.names and len(self.names) < _MAX_CONSUMERS:
            self.names[client] = _CONSUMER.format(len(self.names) + 1)

    def _next(self, at: float) -> int:
        """Return an index that no other item has; indices are in the order of time."""
        return round(at * 1000) * _SAME_TIME + next(self._count)

    def _mark(self, lane: str, at: float, tone: Tone, label: str) -> int:
        index = self._next(at)
        self._scene.marks.append(DrawnStep(index, lane, at, tone, label))
        return index

    def _draw_event(self, event: RecordedEvent) -> None:
        queue = self.queue
        if event.kind in ("reset", "repair"):
            label = f"reset to {queue.target}" if event.kind == "reset" else "reset again"
            self._mark(_DASHBOARD, event.at, Tone.RESET, label)
            self._scene.arrows.append(
                Arrow(
                    self._next(event.at), _DASHBOARD, queue.broker_name, event.at, event.at, Tone.RESET, "222"
                )
            )
        elif event.queue == queue.name:
            tone = Tone.END if event.kind in _VERDICTS else Tone.STEP
            index = self._mark(_DASHBOARD, event.at, tone, event.kind)
            if event.kind == State.LOST:
                number = len(self._scene.offences) + 1
                self._scene.offences = (*self._scene.offences, Offence(index, event.at, number))

    def _draw_stored(self) -> None:
        """Mark where the stored offset went back, came to the target, or jumped past the redelivery."""
        queue, before = self.queue, self.queue.before
        for seen in self.queue.seen:
            if seen.stored is None or seen.stored == before:
                continue
            is_jump = before < queue.before <= seen.stored
            if seen.stored < before or seen.stored == queue.target or is_jump:
                self._mark(queue.broker_name, seen.at, Tone.COMMIT, f"stored {seen.stored}")
            before = seen.stored

    def _draw_sample(self, seen: Seen) -> None:
        present = {each.client_id: each for each in seen.positions if each.client_id in self.names}
        for client in [each for each in self._owners if each not in present or present[each].dropped]:
            self._mark(self.names[client], seen.at, Tone.STEP, "gave the queue up")
            self._owners.discard(client)
        for client, position in present.items():
            self._draw_position(seen.at, client, position)
        for client in [each for each in self._held if each not in present or not present[each].holds]:
            self._deliver(client, self._held.pop(client), seen.at)

    def _draw_position(self, at: float, client: str, position: SeenPosition) -> None:
        if not position.dropped:
            if position.low < self._lows.get(client, 0):
                self._mark(self.names[client], at, Tone.RESET, f"back to {position.low}")
            elif client not in self._owners:
                self._mark(self.names[client], at, Tone.PULL, f"at {position.low}")
            self._lows[client] = position.low
            self._owners.add(client)
        held = self._held.get(client)
        if position.holds and (held is None or held.low != position.low):
            if held is not None:
                self._deliver(client, held, at)
            self._held[client] = _Held(at, position.low)

    def _deliver(self, client: str, held: _Held, until: float | None) -> None:
        self._scene.deliveries.append(
            DrawnDelivery(self._next(held.since), self.names[client], held.since, (held.low,), until)
        )

    def _moments(self) -> Iterable[ProgressChange]:
        """Yield stored offset and progress of the redelivery: the lowest offset that is not consumed."""
        queue, progress = self.queue, None
        for seen in queue.seen:
            lows = [each.low for each in seen.positions if not each.dropped]
            low = min(lows, default=None)
            if low is not None and (progress is not None or queue.target <= low < queue.before):
                progress = max(progress or 0, low)
            yield ProgressChange(seen.at, self._next(seen.at), seen.stored, progress)
