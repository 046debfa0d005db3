"""Position: what one consumer reports of one queue, from GET_CONSUMER_RUNNING_INFO (307)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """A consumer's work on one queue.

    Attributes:
        offset: the offset in memory, which the consumer commits next.
        first: offset of the first message that it holds; None if it holds none.
        dropped: the consumer gives the queue up, and discards what it holds.
        last_consume: time of the last consumption by the consumer's clock, in ms; of the start if none.
        last_pull: time of the last pull by the consumer's clock, in ms.
        done: messages above the lowest one that it holds, and consumed already.
    """

    client_id: str
    offset: int
    first: int | None
    dropped: bool
    last_consume: int
    last_pull: int = 0
    done: int = 0


def low_of(position: Position) -> int:
    """Return the lowest offset that the consumer has not consumed."""
    return position.offset if position.first is None else position.first
