"""Informs clients of a reset at the broker: answers suspended pulls, and notifies clients that have none."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from rewindmq.broker.pull.long_polling import LongPolling
from rewindmq.broker.pull.reset_notifier import ResetNotifier
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Timers
from rewindmq.protocol.version import MQVersion

# Pulls and queues in one turn of the event loop: about 5 ms.
_SLICE: Final = 256
_END: Final = object()


class ResetAnnouncer:
    """Informs the clients of each reset, a slice in each turn of the event loop; small resets take one.

    Clients may learn of a reset late: the broker refuses or ignores their outdated commits from the reset on.
    """

    def __init__(self, timers: Timers, long_polling: LongPolling, notifier: ResetNotifier) -> None:
        self._timers = timers
        self._long_polling = long_polling
        self._notifier = notifier
        self._due: deque[Iterator[None]] = deque()
        self._timer: Cancellable | None = None

    def announce(
        self, group: str, topic: str, offsets: Mapping[int, int], epochs: Mapping[int, int] | None = None
    ) -> None:
        """Inform the clients of a group; the first slice runs at once.

        Args:
            offsets, epochs: by queue id, as stored. Without epochs, no client gets a notification, and the
                pulls of clients before 5.2.0 stay suspended: these drop the queue and commit the target 10 s
                later, and only the mark, which the pull would consume, protects the offset until then.
        """
        self._due.append(self._steps(group, topic, offsets, epochs))
        if self._timer is None:
            self._run()

    def close(self) -> None:
        """Drop what is left; the connections are about to close."""
        if self._timer is not None:
            self._timer.cancel()
        self._due.clear()

    def _run(self) -> None:
        self._timer = None
        steps = self._due.popleft()
        try:
            for _ in range(_SLICE):
                if next(steps, _END) is _END:
                    break
            else:
                self._due.appendleft(steps)
        finally:
            if self._due:
                self._timer = self._timers.call_later(0.0, self._run)

    def _steps(
        self, group: str, topic: str, offsets: Mapping[int, int], epochs: Mapping[int, int] | None
    ) -> Iterator[None]:
        informed: set[tuple[Connection, int]] = set()
        oldest = MQVersion.V5_2_0 if epochs is None else 0
        for queue_id in offsets:
            for connection in self._long_polling.answer_outdated(group, topic, queue_id, oldest):
                if connection is not None:
                    informed.add((connection, queue_id))
                yield
            yield
        if epochs is None:
            return
        for queue_id, offset in offsets.items():
            connection = self._notifier.puller((group, topic, queue_id))
            if connection is not None and (connection, queue_id) not in informed:
                self._notifier.notify(connection, group, topic, queue_id, offset, epochs[queue_id])
            yield
