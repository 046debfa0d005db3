"""One step of a schedule: something that may happen next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

# Where a step that has to do with every host takes place.
EVERYWHERE = "*"


class StepKind(Enum):
    """What makes a step happen."""

    DELIVER = "a message arrives"
    FIRE = "timers of a host fire"
    TICK = "time passes"
    ACT = "the model does something"


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is possible now.

    Attributes:
        name: unlike that of any other step possible at the same time.
        host: where it takes place; ``EVERYWHERE`` for those that depend on all others.
        delayed: of the messages that it makes late, the number of the step that sent each.
        lane: of a message; "" for other steps.
        born: number of the step that made it possible.
        is_free: it may as well come later, however much time passes: actions, and messages that are late.
    """

    kind: StepKind
    name: str
    host: str
    run: Callable[[], None]
    delayed: tuple[int, ...] = ()
    lane: str = ""
    born: int = 0
    is_free: bool = False

    @property
    def cost(self) -> int:
        """How many messages it makes late."""
        return len(self.delayed)


@dataclass(frozen=True, slots=True)
class Action:
    """Something that happens at most once, between two steps of the code.

    Attributes:
        name: ``crash broker-a``.
        host: where it takes place, ``step.EVERYWHERE`` if it touches several.
        run: makes it happen.
        is_forced: it has happened by the end of the window, then if not before.
        may_be_last: the window may end without it, when nothing else is left to happen.
    """

    name: str
    host: str
    run: Callable[[], None]
    is_forced: bool = False
    may_be_last: bool = True
