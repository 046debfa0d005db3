"""An event loop that asks somebody else what happens next, whenever nothing is ready."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from rewindmq.race.sim.host import incarnation_of
from rewindmq.race.sim.loop import VirtualLoop, VirtualTimer

# Timers of the laboratory itself.
NOBODY = ""


class ExploredLoop(VirtualLoop):
    """Timers that are due wait to be fired, host by host.

    Attributes:
        when_idle: called when nothing is ready; has to make something ready.
    """

    def __init__(self) -> None:
        super().__init__()
        self.when_idle: Callable[[], None]
        self._due: dict[str, list[VirtualTimer]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether something is ready."""
        return bool(self._ready)

    @property
    def next_moment(self) -> float | None:
        """When the next timer is due; None when there is none."""
        return self._next_moment()

    def pass_time(self) -> None:
        """Go to the next moment at which a timer is due. DeadlockError when there is none."""
        moment = self._go_to_next_moment()
        while self._next_moment() == moment:
            timer = heapq.heappop(self._timers)[2]
            owner = incarnation_of(timer.context)
            self._due.setdefault(NOBODY if owner is None else owner.host, []).append(timer)

    def due_hosts(self) -> list[str]:
        """The hosts with timers that are due, in the order these were set."""
        for host in [host for host, timers in self._due.items() if not any(map(_counts, timers))]:
            del self._due[host]
        return list(self._due)

    def fire(self, host: str) -> None:
        """Run the timers of a host that are due."""
        self._ready.extend(self._due.pop(host))

    def _idle(self) -> None:
        self.when_idle()


def _counts(timer: VirtualTimer) -> bool:
    owner = incarnation_of(timer.context)
    return not timer.cancelled() and (owner is None or owner.is_alive)
