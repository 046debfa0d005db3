"""Parameters of a model: its cluster, the events a schedule may add, and the window of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.listener import Place


@dataclass(frozen=True, slots=True)
class PlannedReset:
    """A reset of queue 0 to ``offset``. The first opens the window; the schedule starts the others."""

    offset: int


@dataclass(frozen=True, slots=True)
class Model:
    """A small cluster, and the window of time in which a schedule decides what happens.

    Attributes:
        name: as on the command line.
        title: description in one line.
        queues: number of queues of the topic, all on one broker.
        messages: messages sent to each queue before the window; all are consumed except the blocked ones.
        consumers: names of the consumers that run from the beginning.
        joins: consumers that start when the schedule says, or never.
        crashes: processes that the schedule may kill, once each: ``broker-a``, ``consumer-A``.
        resets: see ``PlannedReset``.
        sends: messages that the schedule may send to queue 0 during the window, one at a time.
        blocked: messages (queue id, offset) whose first listener call returns when the schedule says.
        again_seconds: how long a listener takes for a redelivered message.
        phases: possible delays (seconds) between the cluster's coming to rest and the opening of the window.
            A schedule's first choice is one of them. It decides how much longer the pulls stay suspended.
        window: length of the window, seconds.
        budget: default limit of late messages in a schedule.
        late_to_break: by mode, the smallest limit of late messages with which a schedule breaks a law. A mode
            without an entry breaks no law with any limit small enough for an exhaustive search.
    """

    name: str
    title: str
    queues: int = 1
    messages: int = 2
    consumers: tuple[str, ...] = ("A", "B")
    joins: tuple[str, ...] = ()
    crashes: tuple[str, ...] = ()
    resets: tuple[PlannedReset, ...] = (PlannedReset(0),)
    sends: int = 0
    blocked: frozenset[Place] = field(default_factory=lambda: frozenset({(0, 1)}))
    again_seconds: float = 3.0
    phases: tuple[float, ...] = (3.0, 8.0)
    window: float = 26.0
    budget: int = 1
    late_to_break: Mapping[ResetMode, int] = field(
        default_factory=lambda: MappingProxyType({ResetMode.CLASSIC: 0})
    )
