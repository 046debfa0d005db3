"""What a replay plan says; every figure is of the moment the job looked at the stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

FORMAT: Final = 1


class Mode(StrEnum):
    """Which release's search by time sets the target (docs/spec/broker.md B.10)."""

    # 4.2.0 to 5.1.0.
    NEAREST = "nearest"
    # 5.1.1 and later.
    BOUNDARY = "boundary"


MODE_TEXTS: Final = MappingProxyType(
    {Mode.NEAREST: "RocketMQ 4.x to 5.1.0", Mode.BOUNDARY: "RocketMQ 5.1.1 and later"}
)


class Direction(StrEnum):
    """Where a reset moves a group in a queue."""

    BACK = "back"
    AHEAD = "ahead"
    STAYS = "stays"
    # Nothing is stored for the group: what it has consumed is not known.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Load:
    """Messages that come again, or that are skipped where a queue moves ahead.

    Attributes:
        messages: whose records the log holds.
        size: bytes of their records as stored.
        distinct_keys: different KEYS texts among them, whole, as a compaction sees them.
        without_key: messages that have none.
        superseded: those of which the same queue holds a later message with the same key.
        unreadable: positions of the queue whose record is missing or damaged.
    """

    messages: int = 0
    size: int = 0
    distinct_keys: int = 0
    without_key: int = 0
    superseded: int = 0
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """One queue, as one search mode would reset it.

    Attributes:
        target: the offset the broker would store or tell.
        start: where consuming would go on: ``target`` within [min, max].
        load: of the messages between the group's position and ``start``.
        first_time, last_time: store times of the first and the last of them, ms; None without any.
        histogram: messages by store time, one number for each bin of the plan; empty without any.
    """

    target: int
    start: int
    direction: Direction
    load: Load
    first_time: int | None
    last_time: int | None
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """One queue of one store.

    Attributes:
        store: index into the plan's stores.
        current: the stored offset; None when there is none.
        position: where the group stands: ``current`` within [min, max]; None without a stored offset.
        min_offset, max_offset: of the messages kept, max exclusive.
        is_deleted: the target lies before the first message kept.
        without_offset: what the group would do that has no offset stored; "" when it has.
    """

    store: int
    queue_id: int
    current: int | None
    position: int | None
    min_offset: int
    max_offset: int
    is_deleted: bool
    without_offset: str
    moves: Mapping[Mode, Move]


@dataclass(frozen=True, slots=True)
class StorePlan:
    """One store, that is one broker.

    Attributes:
        location: as given.
        label: tells it from the plan's other stores.
        offsets_saved: when consumerOffset.json was written, ms (the broker does that every 5 s);
            None: unknown.
        retry_waiting: messages in the group's retry topic behind its offset there; a reset leaves them alone.
    """

    location: str
    label: str
    offsets_saved: int | None
    retry_waiting: int


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of all histograms: ``count`` of ``width`` ms from ``start`` on; count 0 without messages."""

    start: int
    width: int
    count: int


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a reset of ``group`` in ``topic`` would bring.

    Attributes:
        to: where to, as given.
        timestamp: ms; None for an offset or the end.
        offset: None for a time or the end.
        totals: over all queues that move back; distinct keys count once however many queues hold them.
        skipped: over all queues that move ahead.
        notes: what the operator should know besides, one sentence each.
    """

    group: str
    topic: str
    to: str
    timestamp: int | None
    offset: int | None
    stores: tuple[StorePlan, ...]
    queues: tuple[QueuePlan, ...]
    totals: Mapping[Mode, Load]
    skipped: Mapping[Mode, Load]
    bins: Bins
    notes: tuple[str, ...]

    def histogram(self, mode: Mode, direction: Direction) -> tuple[int, ...]:
        """The histograms of all queues that move so, added up."""
        return _added_up(
            self.bins.count,
            (
                queue.moves[mode].histogram
                for queue in self.queues
                if queue.moves[mode].direction is direction
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """As ``docs/pipeline/replay-plan.md`` describes it."""
        return {
            "format": FORMAT,
            "group": self.group,
            "topic": self.topic,
            "to": self.to,
            "timestamp": self.timestamp,
            "offset": self.offset,
            "stores": [_camel(asdict(store)) for store in self.stores],
            "bins": asdict(self.bins),
            "totals": {str(mode): self._total(mode) for mode in Mode},
            "queues": [self._queue(queue) for queue in self.queues],
            "notes": list(self.notes),
        }

    def _total(self, mode: Mode) -> dict[str, Any]:
        return {
            "redelivered": _camel(asdict(self.totals[mode])),
            "skipped": _camel(asdict(self.skipped[mode])),
            "histogram": list(self.histogram(mode, Direction.BACK)),
            "skippedHistogram": list(self.histogram(mode, Direction.AHEAD)),
        }

    def _queue(self, queue: QueuePlan) -> dict[str, Any]:
        return {
            "store": self.stores[queue.store].label,
            "queueId": queue.queue_id,
            "current": queue.current,
            "position": queue.position,
            "min": queue.min_offset,
            "max": queue.max_offset,
            "isDeleted": queue.is_deleted,
            "withoutOffset": queue.without_offset,
            "modes": {str(mode): _move(queue.moves[mode]) for mode in Mode},
        }


def _move(move: Move) -> dict[str, Any]:
    return {
        "target": move.target,
        "start": move.start,
        "direction": str(move.direction),
        **_camel(asdict(move.load)),
        "firstTime": move.first_time,
        "lastTime": move.last_time,
        "histogram": list(move.histogram),
    }


def _added_up(count: int, histograms: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    sums = [0] * count
    for histogram in histograms:
        for place, messages in enumerate(histogram):
            sums[place] += messages
    return tuple(sums)


def _camel(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"".join((name[0], name.title().replace("_", "")[1:])): value for name, value in fields.items()}
