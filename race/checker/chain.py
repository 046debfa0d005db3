"""A chain of pulls: consecutive pulls, each from the next offset of the one before."""

from __future__ import annotations


class Chain:
    """State of one chain.

    Attributes:
        first: offset of its first pull.
        offset: of its latest pull, or the next offset in that pull's answer.
        is_waiting: the latest pull is not answered yet.
        is_stale: the latest pull was sent before the reset took effect.
        stale_until: end of the messages that stale pulls returned.
        began, latest: times of its first and its latest pull.
        turn: number of its latest pull among the pulls of all chains of the queue.
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
