"""A chain of pulls: one after the other, each from where the one before ended."""

from __future__ import annotations


class Chain:
    """What is known of one chain.

    Attributes:
        first: offset of its first pull.
        offset: of its latest pull, or where that one said to go on.
        is_waiting: the latest pull is not answered yet.
        is_stale: the latest pull was sent before the reset took effect.
        stale_until: messages below this were brought by such pulls.
        began, latest: when its first and its latest pull were sent.
        turn: number of its latest pull among those of all chains of the queue.
    """

    __slots__ = (
        "began",
        "first",
        "is_alive",
        "is_stale",
        "is_waiting",
        "latest",
        "name",
        "offset",
        "process",
        "stale_until",
        "turn",
    )

    def __init__(self, process: str, name: object, offset: int, at: float) -> None:
        self.process = process
        self.name = name
        self.first = self.offset = offset
        self.began = self.latest = at
        self.turn = 0
        self.is_waiting = False
        self.is_stale = True
        self.is_alive = True
        self.stale_until = 0
