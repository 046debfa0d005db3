"""When blocked queues are free again: one timer for the earliest of them.

RocketMQ 5.5.1 ``QueueLevelConsumerOrderInfoLockManager`` has a wheel of 100 ms and an entry for each queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from rewindmq.broker.pop.orderly.order_info_table import OrderKey
from rewindmq.protocol.remoting.runtime import Cancellable, Clock, Timers

# Outdated entries of the heap are removed when they exceed the others by this many.
_SPARE: Final = 1_024
# Queues that one turn of the event loop notifies.
_QUEUES_PER_TURN: Final = 100


class LockFreeTimes:
    """Calls ``on_free`` with each queue whose time has come.

    Args:
        on_free: wakes the requests that wait for the queue.
    """

    def __init__(self, clock: Clock, timers: Timers, on_free: Callable[[OrderKey], None]) -> None:
        self._clock = clock
        self._timers = timers
        self._on_free = on_free
        self._times: dict[OrderKey, int] = {}
        # Also contains replaced times.
        self._heap: list[tuple[int, OrderKey]] = []
        self._timer: Cancellable | None = None
        self._timer_ms = 0

    def __len__(self) -> int:
        return len(self._times)

    def load(self, times: Mapping[OrderKey, int]) -> None:
        """Begin with these times."""
        self._times = dict(times)
        self._rebuild()
        self.look()

    def put(self, key: OrderKey, time_ms: int | None) -> None:
        """Replace the queue's time; None removes it."""
        if time_ms is None:
            self._times.pop(key, None)
            return
        if self._times.get(key) == time_ms:
            return
        self._times[key] = time_ms
        heappush(self._heap, (time_ms, key))
        if len(self._heap) > 2 * len(self._times) + _SPARE:
            self._rebuild()
        if self._timer is None or time_ms < self._timer_ms:
            self._set_timer()

    def look(self) -> None:
        """Look again now, because the wall clock was moved."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._set_timer()

    def close(self) -> None:
        """Call nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._times.clear()
        self._heap.clear()

    def _rebuild(self) -> None:
        self._heap = [(time_ms, key) for key, time_ms in self._times.items()]
        heapify(self._heap)

    def _set_timer(self) -> None:
        heap = self._heap
        while heap and self._times.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        if not heap:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = heap[0][0]
        seconds = max(0, self._timer_ms - self._clock.now_ms()) / 1_000 / self._clock.scale
        self._timer = self._timers.call_later(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        now = self._clock.now_ms()
        for _ in range(_QUEUES_PER_TURN):
            if not self._heap or self._heap[0][0] > now:
                break
            time_ms, key = heappop(self._heap)
            if self._times.get(key) == time_ms:
                del self._times[key]
                self._on_free(key)
        self._set_timer()
