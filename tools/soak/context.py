"""The context of a worker process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from tools.soak.journal import JournalWriter
from tools.soak.options import SoakGroup


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What a worker process works with.

    Attributes:
        group: None for a producer.
        rate: messages a second that a producer sends.
        without: features left out, see ``options.FEATURES``.
        counts: counters that the process reports to the driver each second.
        stopping: set when a producer must send no more.
        ending: set when the process must end.
        chain: returns the number of the ProcessQueue whose listener is being called.
    """

    namesrv: str
    runtime: Runtime
    profile: Profile
    group: SoakGroup | None
    producer: int
    rate: float
    time_scale: float
    without: frozenset[str]
    journal: JournalWriter
    counts: Counter[str]
    stopping: asyncio.Event
    ending: asyncio.Event
    chain: Callable[[], int]

    async def pause(self, seconds: float) -> bool:
        """Wait, at most until the producer must stop; return True while it need not."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            pass
        return not self.stopping.is_set()
