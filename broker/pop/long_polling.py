"""Suspended POPs and NOTIFICATIONs, which wait for messages (RocketMQ 5.5.1 ``PopLongPollingService``).

One rule wakes them: for each group, a message wakes one request for its queue and one for all queues; a POP
that leaves messages wakes the next one. A request whose time is over is woken, too.
What is woken runs again, and is suspended again if it finds nothing and its time is not over. Changed: a
message passes over requests whose filters do not match, up to a limit; RocketMQ looks at the first one only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush
from itertools import islice
from math import ceil
from typing import Final, TypeVar

from rewindmq.broker.limits import MAX_SUSPEND_SECONDS
from rewindmq.broker.pull.long_polling import (
    SUSPENDED_BYTES,
    SUSPENDED_BYTES_PER_CHARACTER,
    LongPolling,
    MessageFilter,
    is_wanted,
)
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import NotificationRequestHeader, PopMessageRequestHeader
from rewindmq.protocol.pop.topics import ALL_QUEUES
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Clock, Timers

# Requests run again in one turn of the event loop: about 5 ms.
_SLICE: Final = 128
# Requests end this long before their time: the response is still in time then (``PopRequest#isTimeout``).
_EARLY_SECONDS: Final = 0.05
# Requests that end within the same step are woken together.
_STEP_SECONDS: Final = 0.02
# Suspended requests whose filters are compared with one message.
_MOST_COMPARED: Final = 64
# Topics without suspended requests are watched until the next look.
_LOOK_SECONDS: Final = 5.0

K = TypeVar("K")


class PollingResult(Enum):
    """Whether a request is suspended, and if not, why (RocketMQ ``PollingResult``)."""

    POLLING_SUC = "suspended"
    POLLING_FULL = "no room"
    POLLING_TIMEOUT = "its time is over"
    NOT_POLLING = "it does not wait"


@dataclass(frozen=True, slots=True, eq=False)
class SuspendedPop:
    """A suspended POP or NOTIFICATION.

    Attributes:
        filter: the messages for which it waits.
        run: runs it again.
        step: when it ends, in steps of the monotonic clock.
    """

    connection: Connection
    request: RemotingCommand
    header: PopMessageRequestHeader | NotificationRequestHeader
    filter: MessageFilter
    run: Callable[[SuspendedPop], None]
    step: int

    @property
    def key(self) -> tuple[str, bool]:
        """The group, and whether it is a NOTIFICATION: each kind is woken by itself."""
        return self.header.consumer_group, isinstance(self.header, NotificationRequestHeader)

    @property
    def queue_id(self) -> int:
        """The queue id; ``ALL_QUEUES`` for any negative one."""
        return max(self.header.queue_id, ALL_QUEUES)

    @property
    def memory(self) -> int:
        """About the memory that the request takes, in bytes."""
        texts = len(self.header.exp or "") * SUSPENDED_BYTES_PER_CHARACTER + len(self.header.attempt_id or "")
        return SUSPENDED_BYTES + texts


_Pops = dict[SuspendedPop, None]
# The suspended requests of a topic: by queue id, then by group and kind, in order of arrival.
_TopicPops = dict[int, dict[tuple[str, bool], _Pops]]


class PopLongPolling:
    """The suspended requests of all topics; they have a share of what suspended pulls may take.

    Args:
        long_polling: announces the messages of the queues on which requests wait.
        queue_nums: returns the number of a topic's queues.
        per_queue, most: limits on the requests of one group and queue, and on all.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        long_polling: LongPolling,
        queue_nums: Callable[[str], int],
        *,
        per_queue: int,
        most: int,
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._long_polling = long_polling
        self._shares = long_polling.shares
        self._queue_nums = queue_nums
        self._per_queue = per_queue
        self._most = most
        self._count = 0
        self._topics: dict[str, _TopicPops] = {}
        self._of: dict[Connection, _Pops] = {}
        # The number of queues that are watched, by topic.
        self._watched: dict[str, int] = {}
        self._look_timer: Cancellable | None = None
        self._woken: list[SuspendedPop] = []
        # Of which topic, queue id and group a woken POP has not run yet: it wakes the next one itself.
        self._running: set[tuple[str, int, str]] = set()
        # The requests that end in each step, and the steps as a heap, which may have steps without requests.
        self._steps: dict[int, _Pops] = {}
        self._heap: list[int] = []
        self._timer: Cancellable | None = None
        self._timer_step = 0
        self._is_closed = False

    def close(self) -> None:
        """Drop all requests; the connections are about to close."""
        self._is_closed = True
        for timer in (self._timer, self._look_timer):
            if timer is not None:
                timer.cancel()
        for connection in list(self._of):
            self.on_close(connection)
        self._woken.clear()
        self._running.clear()

    @property
    def suspended_count(self) -> int:
        """The number of suspended requests."""
        return self._count

    def polling_num(self, group: str, topic: str, queue_id: int) -> int:
        """Return how many POPs of the group are suspended that ask for this queue, or for all."""
        queues = self._topics.get(topic, {}).get(max(queue_id, ALL_QUEUES), {})
        return len(queues.get((group, False), ()))

    def suspend(
        self,
        connection: Connection,
        request: RemotingCommand,
        header: PopMessageRequestHeader | NotificationRequestHeader,
        wanted: MessageFilter,
        run: Callable[[SuspendedPop], None],
    ) -> PollingResult:
        """Keep a request until a message arrives or its time is over.

        Args:
            header: ``born_time`` is set.
            run: runs the request again.
        """
        # A oneway request gets no response, and no limit counts it.
        if header.poll_time <= 0 or self._is_closed or request.is_oneway:
            return PollingResult.NOT_POLLING
        now = self._clock.monotonic()
        passed = (self._clock.now_ms() - header.born_time) / 1_000 / self._clock.scale
        left = header.poll_time / 1_000 - passed - _EARLY_SECONDS
        step = ceil((now + min(left, MAX_SUSPEND_SECONDS)) / _STEP_SECONDS)
        # A request whose step has come would be woken at once, again and again within one millisecond.
        if left < 0 or step * _STEP_SECONDS <= now + _STEP_SECONDS / 2:
            return PollingResult.POLLING_TIMEOUT
        pop = SuspendedPop(connection, request, header, wanted, run, step)
        topic, memory = header.topic, pop.memory
        waiting = self._topics.get(topic, {}).get(pop.queue_id, {}).get(pop.key, ())
        if (
            self._count >= self._most
            or len(waiting) > self._per_queue
            or not self._shares.has_room(connection, memory)
        ):
            return PollingResult.POLLING_FULL
        request.drop_content()
        if isinstance(header, NotificationRequestHeader):
            header.client_id = None
        self._shares.add(connection, memory)
        self._count += 1
        self._topics.setdefault(topic, {}).setdefault(pop.queue_id, {}).setdefault(pop.key, {})[pop] = None
        self._of.setdefault(connection, {})[pop] = None
        self._end_in(step, pop)
        self._watch(topic)
        return PollingResult.POLLING_SUC

    # Waking

    def wake(self, topic: str, group: str, queue_id: int) -> None:
        """Wake one POP and one NOTIFICATION of a group that ask for this queue (or, if negative, for all)."""
        groups = self._topics.get(topic, {}).get(max(queue_id, ALL_QUEUES), {})
        for is_notification in (False, True):
            pops = groups.get((group, is_notification))
            if pops:
                self._wake_one(next(iter(pops)))

    def on_retry(self, topic: str, group: str, queue_id: int) -> None:
        """Wake one request of each kind: a message was stored in the group's retry topic.

        Args:
            topic: the topic to which the retry topic belongs.
            queue_id: in the retry topic. As in RocketMQ, requests for the queue of the same number are woken.
        """
        if topic in self._topics:
            self.wake(topic, group, ALL_QUEUES)
            self.wake(topic, group, queue_id)

    def on_close(self, connection: Connection) -> None:
        """Drop the requests of a closed connection."""
        self._remove(list(self._of.get(connection, ())))

    def _on_arrival(
        self, topic: str, queue_id: int, tag_codes: tuple[int, ...], properties: Sequence[bytes]
    ) -> None:
        queues = self._topics.get(topic)
        if queues is None:
            return
        for number in (ALL_QUEUES, queue_id):
            for pops in list(queues.get(number, {}).values()):
                for pop in islice(pops, _MOST_COMPARED):
                    if pop.filter is None or is_wanted(pop.filter, tag_codes, properties):
                        self._wake_one(pop)
                        break

    def _wake_one(self, pop: SuspendedPop) -> None:
        group, is_notification = pop.key
        if not is_notification:
            queue = pop.header.topic, pop.queue_id, group
            if queue in self._running:
                return
            self._running.add(queue)
        self._wake((pop,))

    def _wake(self, pops: Iterable[SuspendedPop]) -> None:
        """Let requests run again, when all messages of this event-loop turn are stored."""
        pops = tuple(pops)
        self._remove(pops)
        if pops and not self._woken:
            self._timers.call_later(0.0, self._run_woken)
        self._woken += pops

    def _run_woken(self) -> None:
        woken, self._woken = self._woken[:_SLICE], self._woken[_SLICE:]
        if self._woken:
            self._timers.call_later(0.0, self._run_woken)
        for pop in woken:
            self._running.discard((pop.header.topic, pop.queue_id, pop.header.consumer_group))
            if pop.connection.is_closed:
                # The message that has woken it is for another one.
                self.wake(pop.header.topic, pop.header.consumer_group, pop.header.queue_id)
            else:
                pop.run(pop)

    # The ends of requests

    def _end_in(self, step: int, pop: SuspendedPop) -> None:
        pops = self._steps.get(step)
        if pops is None:
            pops = self._steps[step] = {}
            heappush(self._heap, step)
            if self._timer is None or step < self._timer_step:
                self._set_timer()
        pops[pop] = None

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._heap[0] not in self._steps:
            heappop(self._heap)
        if self._heap:
            self._timer_step = self._heap[0]
            left = self._timer_step * _STEP_SECONDS - self._clock.monotonic()
            self._timer = self._timers.call_later(max(left, 0.0), self._end)

    def _end(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0] * _STEP_SECONDS <= now + _STEP_SECONDS / 2:
            self._wake(self._steps.get(heappop(self._heap), ()))
        self._set_timer()

    # Tables

    def _remove(self, pops: Iterable[SuspendedPop]) -> None:
        for pop in pops:
            queues = self._topics[pop.header.topic]
            groups = queues[pop.queue_id]
            del groups[pop.key][pop]
            if not groups[pop.key]:
                del groups[pop.key]
                if not groups:
                    del queues[pop.queue_id]
                    if not queues:
                        del self._topics[pop.header.topic]
            _discard(self._of, pop.connection, pop)
            _discard(self._steps, pop.step, pop)
            self._count -= 1
            self._shares.remove(pop.connection, pop.memory)

    def _watch(self, topic: str) -> None:
        watched, count = self._watched.get(topic, 0), self._queue_nums(topic)
        for queue_id in range(watched, count):
            self._long_polling.watch(topic, queue_id, self._on_arrival)
        if count > watched:
            self._watched[topic] = count
        if self._look_timer is None:
            self._look_timer = self._timers.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Stop watching topics without suspended requests."""
        self._look_timer = None
        for topic in [topic for topic in self._watched if topic not in self._topics]:
            for queue_id in range(self._watched.pop(topic)):
                self._long_polling.unwatch(topic, queue_id)
        if self._watched:
            self._look_timer = self._timers.call_later(_LOOK_SECONDS, self._look)


def _discard(table: dict[K, _Pops], key: K, pop: SuspendedPop) -> None:
    pops = table[key]
    del pops[pop]
    if not pops:
        del table[key]
