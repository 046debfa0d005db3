"""LagHistory: the lag of groups over time, as far as pages have looked at them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from rewindmq.protocol.message_queue import MessageQueue

# Groups whose past is kept: those that were looked at last.
MAX_GROUPS: Final = 20
# Samples of a group. When they are full, every second is dropped; the first stays.
MAX_SAMPLES: Final = 240
# Groups with more queues have only the past of their sum.
MAX_QUEUES: Final = 512
# Two looks within this time are one sample, ms.
_APART_MS: Final = 900


@dataclass
class Past:
    """The samples of one group, the oldest first; ``lags[i]`` are of the queues ``queues`` at ``times[i]``.

    Attributes:
        times: ms.
        totals: messages behind in all queues together.
    """

    queues: tuple[MessageQueue, ...] = ()
    times: list[int] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    lags: list[array[int]] = field(default_factory=list)

    def of_queue(self, queue: MessageQueue) -> list[int]:
        """Return the queue's lags, as many as ``times``; none if they are not kept."""
        if queue not in self.queues:
            return []
        place = self.queues.index(queue)
        return [sample[place] for sample in self.lags]


class LagHistory:
    """Keeps the past of some groups in memory."""

    def __init__(self) -> None:
        self._groups: dict[str, Past] = {}

    def add(self, group: str, now_ms: int, lags: Mapping[MessageQueue, int]) -> Past:
        """Remember a sample, and return the group's past with it."""
        past = self._groups.pop(group, None) or Past()
        self._groups[group] = past
        while len(self._groups) > MAX_GROUPS:
            del self._groups[next(iter(self._groups))]
        queues = tuple(lags) if len(lags) <= MAX_QUEUES else ()
        if queues != past.queues:
            # A queue more or less: the lines of before are of another set of queues.
            past = self._groups[group] = Past(queues)
        if past.times and now_ms - past.times[-1] < _APART_MS:
            return past
        past.times.append(now_ms)
        past.totals.append(sum(lags.values()))
        past.lags.append(array("q", [lags[queue] for queue in queues]))
        if len(past.times) > MAX_SAMPLES:
            past.times, past.totals, past.lags = past.times[::2], past.totals[::2], past.lags[::2]
        return past
