"""LagHistory: the lag of groups over time, as far as pages have been open."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Clock

# Groups whose samples are kept: those whose pages were open last.
MAX_GROUPS: Final = 20
# Samples of a group. When they are full, every second is dropped; the first stays.
MAX_SAMPLES: Final = 240
# Groups with more queues have only samples of their sum.
MAX_QUEUES: Final = 512
# Two samples within this time are one, ms.
_APART_MS: Final = 900
# A clock that drifts is adjusted by less, ms.
_SET_BACK_MS: Final = 500
# A peer may send two offsets whose difference has 65 bits.
_INT64: Final = 2**63


@dataclass
class LagSamples:
    """The samples of one group, the oldest first; ``lags[i]`` are of the queues ``queues`` at ``times[i]``.

    Attributes:
        times: ms since 1970, as the clock shows now; rising.
        totals: messages behind in all queues together.
        taken: when the last sample was taken, in seconds of the monotonic clock.
    """

    queues: tuple[MessageQueue, ...] = ()
    times: list[int] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)
    lags: list[array[int]] = field(default_factory=list)
    taken: float = 0.0

    def of_queue(self, queue: MessageQueue) -> list[int]:
        """Return the queue's lags, as many as ``times``; none if they are not kept."""
        if queue not in self.queues:
            return []
        place = self.queues.index(queue)
        return [sample[place] for sample in self.lags]

    def copy(self) -> LagSamples:
        """Return the samples so far; later ones do not change them."""
        return replace(self, times=[*self.times], totals=[*self.totals], lags=[*self.lags])


class LagHistory:
    """Keeps samples of some groups in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Also by the queues: while a broker is away, the samples of all queues wait for its return.
        self._kept: dict[tuple[str, tuple[MessageQueue, ...]], LagSamples] = {}

    def add(self, group: str, lags: Mapping[MessageQueue, int]) -> LagSamples:
        """Remember a sample, and return the group's samples with it."""
        queues = tuple(lags) if len(lags) <= MAX_QUEUES else ()
        samples = self._kept.pop((group, queues), None) or LagSamples(queues)
        self._kept[group, queues] = samples
        while len(self._kept) > MAX_GROUPS:
            del self._kept[next(iter(self._kept))]
        now_ms, now = self._clock.now_ms(), self._clock.monotonic()
        if samples.times:
            passed_ms = int((now - samples.taken) * self._clock.scale * 1000)
            _follow_clock(samples.times, now_ms - passed_ms)
            if passed_ms < _APART_MS:
                return samples
        samples.taken = now
        samples.times.append(now_ms)
        samples.totals.append(sum(lags.values()))
        samples.lags.append(array("q", [max(-_INT64, min(lags[queue], _INT64 - 1)) for queue in queues]))
        if len(samples.times) > MAX_SAMPLES:
            samples.times, samples.totals = samples.times[::2], samples.totals[::2]
            samples.lags = samples.lags[::2]
        return samples

    def find(self, group: str) -> LagSamples | None:
        """Return the samples that were added to last; None: there are none of the group."""
        for (name, _), samples in reversed(self._kept.items()):
            if name == group:
                return samples
        return None


def _follow_clock(times: list[int], last_ms: int) -> None:
    """Move the times back if the clock was set back; ``last_ms`` is the last one's time as it shows now.

    A clock that was set forward looks like a time without samples, which a sleep of the machine is, too.
    """
    ahead = times[-1] - last_ms
    if ahead > _SET_BACK_MS:
        times[:] = [time - ahead for time in times]
