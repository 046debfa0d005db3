"""Event loop that calls ``when_idle`` to decide what happens next, whenever nothing is ready."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from rewindmq.race.sim.host import incarnation_of
from rewindmq.race.sim.loop import VirtualLoop, VirtualTimer

# Stands for the host of timers that belong to the laboratory.
LAB_HOST = ""


class ExploredLoop(VirtualLoop):
    """Virtual loop that keeps due timers until ``fire`` is called for their host.

    Attributes:
        when_idle: called when nothing is ready; it must make something ready, or stop the loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self.when_idle: Callable[[], None]
        self._due: dict[str, list[VirtualTimer]] = {}

    @property
    def is_busy(self) -> bool:
        """True if a callback is ready to run."""
        return bool(self._ready)

    @property
    def next_moment(self) -> float | None:
        """Time of the next timer, seconds; None if no timer is set."""
        return self._next_moment()

    def pass_time(self) -> None:
        """Move the clock to the next timer. Raise DeadlockError if no timer is set."""
        moment, timers = self._go_to_next_moment(), self._timers
        while timers and timers[0][0] == moment:
            timer = heapq.heappop(timers)[2]
            if timer.counts():
                owner = incarnation_of(timer.context)
                self._due.setdefault(LAB_HOST if owner is None else owner.host, []).append(timer)

    def due_hosts(self) -> list[str]:
        """Return the hosts with due timers, in the order in which the timers became due."""
        if not self._due:
            return []
        hosts = []
        for host, timers in list(self._due.items()):
            if any(timer.counts() for timer in timers):
                hosts.append(host)
            else:
                del self._due[host]
        return hosts

    def fire(self, host: str) -> None:
        """Make the due timers of a host ready to run."""
        self._ready.extend(self._due.pop(host))

    def _idle(self) -> None:
        self.when_idle()
