"""Step of a schedule: an event that may happen next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

# Host of a step that concerns every host.
EVERYWHERE = "*"


class StepKind(Enum):
    """Kind of a step."""

    DELIVER = "a message arrives"
    FIRE = "timers of a host fire"
    TICK = "time passes"
    ACT = "the model acts"


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is possible now.

    Attributes:
        name: unique among the steps that are possible at the same time.
        host: where it takes place; ``EVERYWHERE`` if it depends on all other steps.
        run: takes the step.
        delayed: for each message that the step makes late, the number of the step that sent the message.
        lane: lane of the message that arrives; "" for other kinds.
        born: number of the step that made this one possible.
        is_free: True if the step may also come later, however much time passes: actions and late messages.
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
        """Number of messages that the step makes late."""
        return len(self.delayed)


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a model, such as a crash; it happens at most once, between two steps of the code.

    Attributes:
        name: for example ``broker-a is killed``.
        host: where it takes place; ``EVERYWHERE`` if it touches several hosts.
        run: takes the action.
        is_forced: True if the action happens at the end of the window if it has not happened before.
        may_be_last: True if the window may end without the action when nothing else can happen.
    """

    name: str
    host: str
    run: Callable[[], None]
    is_forced: bool = False
    may_be_last: bool = True
