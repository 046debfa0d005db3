"""What a model consists of: who is there, what may happen to them, and how long it is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.listener import Place


@dataclass(frozen=True, slots=True)
class PlannedReset:
    """A reset to ``offset`` of queue 0; the first opens the window, others begin when the schedule says."""

    offset: int


@dataclass(frozen=True, slots=True)
class Model:
    """A small world and a window of time in it.

    Attributes:
        name: as on the command line.
        title: one line.
        queues: of the topic, on its one broker.
        messages: in each queue, sent and consumed before the window, but for those blocked.
        consumers: consumers there from the beginning, by name.
        joins: consumers that start when the schedule says, or never.
        crashes: processes that may be killed, once each: ``broker-a``, ``consumer-A``.
        resets: see ``PlannedReset``.
        sends: messages that may be sent to queue 0 during the window, one at a time.
        blocked: messages (queue id, offset) whose first listener call returns when the schedule says.
        again_seconds: how long a listener takes for a message the group is given again.
        phases: seconds from the moment all are at rest to the opening of the window; the schedule's first
            choice. They decide how much longer pulls will be held.
        window: seconds in which the schedule decides.
        budget: how many messages may be late in a schedule, unless told otherwise.
        late_to_break: how many messages have to be late for a mode to break a law; others do not, or not with
            so few late messages that every schedule can be looked at.
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
