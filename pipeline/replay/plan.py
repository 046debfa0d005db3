"""The data of a replay plan; all figures are as of the time when the job read the stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

FORMAT: Final = 1


class Mode(StrEnum):
    """The search by time that sets the target (docs/spec/broker.md B.10)."""

    # Releases 4.2.0 to 5.1.0.
    NEAREST = "nearest"
    # Releases from 5.1.1 on.
    BOUNDARY = "boundary"


MODE_TEXTS: Final = MappingProxyType(
    {Mode.NEAREST: "RocketMQ 4.x to 5.1.0", Mode.BOUNDARY: "RocketMQ 5.1.1 and later"}
)


class Direction(StrEnum):
    """Direction in which a reset moves a group in a queue."""

    BACK = "back"
    AHEAD = "ahead"
    STAYS = "stays"
    # No offset is stored for the group, so its progress is unknown.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MessageLoad:
    """Messages that a reset redelivers, or skips if the queue moves ahead.

    Attributes:
        messages: number of messages whose records are in the log.
        size: bytes of their records, as stored.
        distinct_keys: number of different KEYS properties; each counts as one key, as in a compaction.
        without_key: messages without a key.
        superseded: messages with a later message of the same key in the same queue.
        unreadable: offsets of the queue whose record is missing or damaged.
    """

    messages: int = 0
    size: int = 0
    distinct_keys: int = 0
    without_key: int = 0
    superseded: int = 0
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """The reset of one queue in one search mode.

    Attributes:
        target: the offset that the broker would store or send to consumers.
        start: the offset at which consuming would continue: ``target`` limited to [min, max].
        load: the messages between the group's position and ``start``.
        first_time, last_time: store times of the first and the last of them, ms; None if there are none.
        histogram: messages by store time, a number per bin of the plan; empty if there are none.
    """

    target: int
    start: int
    direction: Direction
    load: MessageLoad
    first_time: int | None
    last_time: int | None
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class QueueReplay:
    """One queue of one store.

    Attributes:
        store: index into the plan's stores.
        current: the stored offset; None if there is none.
        position: ``current`` limited to [min, max]; None without a stored offset.
        min_offset, max_offset: bounds of the retained messages; max is exclusive.
        is_deleted: whether the target is before the first retained message.
        without_offset: where the group would start if it has no stored offset; "" if it has one.
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
    """One store, that is, one broker.

    Attributes:
        location: path or URI, as given.
        label: name that tells it from the plan's other stores.
        offsets_saved: time when consumerOffset.json was written, ms; the broker writes it every 5 s. None:
            unknown.
        retry_waiting: messages after the group's offset in its retry topic; a reset does not change them.
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
    """The effects of a reset of ``group`` in ``topic``.

    Attributes:
        to: the target, as given.
        timestamp: target time, ms; None for an offset or the end.
        offset: target offset; None for a time or the end.
        totals: sums over all queues that move back; a key in several queues counts once.
        skipped: sums over all queues that move ahead.
        notes: further facts for the operator, one sentence each.
    """

    group: str
    topic: str
    to: str
    timestamp: int | None
    offset: int | None
    stores: tuple[StorePlan, ...]
    queues: tuple[QueueReplay, ...]
    totals: Mapping[Mode, MessageLoad]
    skipped: Mapping[Mode, MessageLoad]
    bins: Bins
    notes: tuple[str, ...]

    def histogram(self, mode: Mode, direction: Direction) -> tuple[int, ...]:
        """Return the sum of the histograms of all queues that move in this direction."""
        return _added_up(
            self.bins.count,
            (
                queue.moves[mode].histogram
                for queue in self.queues
                if queue.moves[mode].direction is direction
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``docs/pipeline/replay-plan.md`` describes."""
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

    def _queue(self, queue: QueueReplay) -> dict[str, Any]:
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
