"""What a model may do at a moment of its choice: crash a host, start one, let a listener return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
