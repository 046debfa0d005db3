"""Outlet: the end of a lane, which passes frames on as fast as the condition of the link allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from rewindmq.protocol.remoting.runtime import Cancellable, Runtime


@dataclass(frozen=True, slots=True)
class LinkCondition:
    """Condition of the network between a client and a server, the same in both directions.

    Attributes:
        is_cut: nothing arrives. What was sent arrives in order when the link is whole again, as TCP repeats
            it; both connections stay open.
        latency: protocol seconds that each frame takes.
        bytes_per_second: bytes that a direction of a connection passes on in a protocol second; None: no
            limit.
    """

    is_cut: bool = False
    latency: float = 0.0
    bytes_per_second: float | None = None


WHOLE: Final = LinkCondition()


def worst_of(conditions: Iterable[LinkCondition]) -> LinkCondition:
    """Combine conditions: latencies add up, and the lowest rate counts."""
    given = list(conditions)
    rates = [each.bytes_per_second for each in given if each.bytes_per_second is not None]
    return LinkCondition(
        any(each.is_cut for each in given),
        sum(each.latency for each in given),
        min(rates, default=None),
    )


class _Sized(Protocol):
    @property
    def size(self) -> int:
        """Number of bytes."""


ItemT = TypeVar("ItemT", bound=_Sized)


class Outlet(Generic[ItemT]):
    """Passes items on in order: at once, late, or not at all while the link is cut.

    Args:
        send: called with each item that may leave.
    """

    def __init__(self, runtime: Runtime, send: Callable[[ItemT], None]) -> None:
        self._clock = runtime.clock
        self._timers = runtime.timers
        self._send = send
        self._condition = WHOLE
        # Items with the time at which each may leave.
        self._items: deque[tuple[float, ItemT]] = deque()
        # When the link has passed on everything so far, at its rate.
        self._free_at = 0.0
        self._timer: Cancellable | None = None

    @property
    def is_clear(self) -> bool:
        """True if nothing waits, and the link is not cut."""
        return not self._items and not self._condition.is_cut

    def put(self, item: ItemT) -> bool:
        """Send an item now or later; return True if it waits."""
        if self._condition is WHOLE and not self._items:
            self._send(item)
            return False
        self._items.append((self._due(item), item))
        self._pump()
        return bool(self._items) and self._items[-1][1] is item

    def set_condition(self, condition: LinkCondition) -> None:
        """Change the condition. What waits leaves at once if the link is whole, else at its old time."""
        self._condition = WHOLE if condition == WHOLE else condition
        if self._condition is WHOLE:
            self._free_at = 0.0
            self._items = deque((0.0, item) for _, item in self._items)
        self._pump()

    def clear(self) -> list[ItemT]:
        """Remove and return the items that wait."""
        self._stop_timer()
        items = [item for _, item in self._items]
        self._items.clear()
        return items

    def _due(self, item: ItemT) -> float:
        now = self._clock.monotonic()
        rate = self._condition.bytes_per_second
        self._free_at = max(now, self._free_at) + (item.size / rate if rate is not None else 0.0)
        return self._free_at + self._condition.latency

    def _pump(self) -> None:
        self._stop_timer()
        while self._items and not self._condition.is_cut:
            due = self._items[0][0]
            left = due - self._clock.monotonic()
            if left > 0:
                self._timer = self._timers.call_later(left, self._pump)
                return
            self._send(self._items.popleft()[1])

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
