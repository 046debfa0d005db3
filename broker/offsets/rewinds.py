"""Which messages the broker has handed out since a queue of a group was set back.

RewindMQ's own: a watcher learns from it whether a rewind was kept, whatever its mode
(docs/watched_reset.md). In memory only; a restart forgets it.

A *rewind* begins when the stored offset of a group moves back: by a commit, by a reset, or when a consumer
commits the target of a classic reset. Until every message up to the queue's end of that moment was handed out
and committed, it is *open*: then the broker notes which offsets each connection pulls. What one connection
pulls without a break is a *run*. A run ends when its connection asks for the stored offset again
(QUERY_CONSUMER_OFFSET, 14), is redirected, pulls elsewhere, or closes. A consumer asks for the stored offset
when it takes the queue over, so a run is the work of one ProcessQueue. The end of a run is noted even after
the rewind is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from operator import attrgetter
from typing import Final

from rewindmq.broker.clients.consumer_manager import ConsumerManager
from rewindmq.broker.limits import MAX_REWINDS, MAX_REWINDS_OF_RESET, MAX_RUNS_OF_REWIND
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.body.rewind import PullRun, Rewind
from rewindmq.protocol.remoting.connection import Connection

_NO_OFFSET: Final = -1
# Group, topic and queue id.
_Queue = tuple[str, str, int]


class Rewinds:
    """The latest rewind of each queue, of at most ``MAX_REWINDS`` queues: the oldest one is forgotten.

    Args:
        now_ms: returns the time in ms since 1970.
        slaves_serve: slaves serve pulls of which this broker learns nothing.

    Attributes:
        open: the rewinds that are not complete, by group, topic and queue id. Callers look here before they
            call ``on_pull``, so that other groups pay nothing.
        awaited: the targets of classic resets that no consumer has committed yet.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        store: MessageStore,
        consumers: ConsumerManager,
        *,
        slaves_serve: bool = False,
    ) -> None:
        self._now_ms = now_ms
        self._store = store
        self._consumers = consumers
        self._slaves_serve = slaves_serve
        self._count = 0
        self._latest: dict[_Queue, Rewind] = {}
        self._current: dict[Connection, dict[_Queue, PullRun]] = {}
        self.open: dict[_Queue, Rewind] = {}
        self.awaited: dict[_Queue, int] = {}

    def find(self, group: str, topic: str, queue_id: int) -> Rewind | None:
        """Return the latest rewind of a queue, or None."""
        rewind = self._latest.get((group, topic, queue_id))
        if rewind is not None:
            self._advance(rewind, topic, queue_id)
        return rewind

    def _advance(self, rewind: Rewind, topic: str, queue_id: int) -> None:
        """Move ``handed_out`` past what has expired, which cannot come again, and along the runs."""
        rewind.handed_out = max(rewind.handed_out, self._store.min_offset(topic, queue_id))
        for run in sorted(rewind.runs, key=attrgetter("first")):
            if run.first <= rewind.handed_out:
                rewind.handed_out = max(rewind.handed_out, run.next)

    def expect(self, group: str, topic: str, targets: Mapping[int, int]) -> None:
        """Note a classic reset: a rewind begins when a consumer commits its target.

        Args:
            targets: queue id to target; only the first ``MAX_REWINDS_OF_RESET`` are noted.
        """
        for queue_id, target in islice(targets.items(), MAX_REWINDS_OF_RESET):
            queue = group, topic, queue_id
            self.awaited.pop(queue, None)
            _make_room(self.awaited)
            self.awaited[queue] = target

    def on_reset(self, group: str, topic: str, targets: Mapping[int, int], before: Mapping[int, int]) -> None:
        """Begin a rewind of each queue that a reset of the broker sets back, or leaves where it is.

        Args:
            targets, before: queue id to stored offset after and before the reset; only the first
                ``MAX_REWINDS_OF_RESET`` are noted.
        """
        for queue_id, target in islice(targets.items(), MAX_REWINDS_OF_RESET):
            queue = group, topic, queue_id
            old = before.get(queue_id, _NO_OFFSET)
            self._forget(queue)
            if target <= old:
                self._begin(queue, old, target, is_reset=True)

    def on_commit(self, group: str, topic: str, queue_id: int, offset: int, before: int) -> None:
        """Take in a commit that the broker has stored.

        Args:
            before: the stored offset before it, -1 if there was none.
        """
        queue = group, topic, queue_id
        if self.awaited and self.awaited.get(queue) == offset:
            del self.awaited[queue]
            if offset <= before:
                self._begin(queue, before, offset, is_reset=True)
                return
        rewind = self._latest.get(queue)
        if offset < before and not (
            # After a late commit, the redelivery's own commits move back, too.
            rewind is not None and rewind.passed is not None and rewind.target <= offset <= rewind.handed_out
        ):
            # It may be a consumer's own commit, after a late one of an offset that was handed out again.
            self._begin(queue, before, offset, is_reset=False)
        elif rewind is not None and queue in self.open:
            rewind.committed = max(rewind.committed, offset)
            if offset > rewind.handed_out and rewind.passed is None:
                rewind.passed = offset
            self._close_if_complete(queue, rewind)

    def on_pull(
        self,
        connection: Connection,
        queue: _Queue,
        offset: int,
        next_offset: int,
        *,
        is_moved: bool,
        was_suspended: bool,
    ) -> None:
        """Take in the response to a pull of an open rewind's queue, or that the pull is suspended.

        Args:
            queue: group, topic and queue id, one of ``open``.
            offset, next_offset: of the pull, and of the next one; equal if it is suspended.
            is_moved: the pull was redirected, so it got no message and ends the run.
            was_suspended: the pull arrived earlier. It may be one of a ProcessQueue that the consumer has
                given up since.
        """
        rewind = self.open[queue]
        run = self._current.get(connection, {}).get(queue)
        goes_on = run is not None and run.is_current and run.first <= offset <= run.next
        if was_suspended and not (goes_on and run is not None and offset <= run.asked):
            return
        if run is not None and (is_moved or not goes_on):
            self._end(connection, queue)
            run = None
        if is_moved:
            return
        if run is None:
            run = PullRun(self._name(queue[0], connection), offset, offset, offset, True)
            _drop_runs(rewind, MAX_RUNS_OF_REWIND - 1)
            rewind.runs.append(run)
            self._current.setdefault(connection, {})[queue] = run
        run.next = max(run.next, next_offset)
        run.asked = max(run.asked, offset)
        self._advance(rewind, *queue[1:])
        self._close_if_complete(queue, rewind)

    def on_query(self, connection: Connection, group: str, topic: str, queue_id: int) -> None:
        """End the connection's run in a queue: it has asked for the stored offset."""
        if self._current:
            self._end(connection, (group, topic, queue_id))

    def on_close(self, connection: Connection) -> None:
        """End the runs of a closed connection."""
        for run in self._current.pop(connection, {}).values():
            run.is_current = False

    def remove(self, *, group: str | None = None, topic: str | None = None) -> None:
        """Forget the rewinds of a group, or of a topic."""
        for queue in [*self._latest, *self.awaited]:
            if (group is None or queue[0] == group) and (topic is None or queue[1] == topic):
                self._forget(queue)

    def _begin(self, queue: _Queue, old: int, target: int, *, is_reset: bool) -> None:
        self._forget_rewind(queue)
        while len(self._latest) >= MAX_REWINDS:
            self._forget_rewind(next(iter(self._latest)))
        first, end = self._store.min_offset(*queue[1:]), self._store.max_offset(*queue[1:])
        self._count += 1
        start = max(target, first)
        rewind = Rewind(self._count, self._now_ms(), old, target, start, end, start, target)
        rewind.notes_all_pulls = is_reset and not self._slaves_serve
        self._latest[queue] = self.open[queue] = rewind

    def _close_if_complete(self, queue: _Queue, rewind: Rewind) -> None:
        asked = max((run.asked for run in rewind.runs), default=_NO_OFFSET)
        if min(rewind.handed_out, rewind.committed, asked) >= rewind.end:
            del self.open[queue]

    def _forget(self, queue: _Queue) -> None:
        self._forget_rewind(queue)
        self.awaited.pop(queue, None)

    def _forget_rewind(self, queue: _Queue) -> None:
        rewind = self._latest.pop(queue, None)
        if rewind is not None:
            _drop_runs(rewind, 0)
        self.open.pop(queue, None)

    def _end(self, connection: Connection, queue: _Queue) -> None:
        runs = self._current.get(connection, {})
        run = runs.pop(queue, None)
        if run is not None:
            run.is_current = False
            if not runs:
                del self._current[connection]

    def _name(self, group: str, connection: Connection) -> str:
        online = self._consumers.find(group)
        channel = None if online is None else online.channels.get(connection)
        return connection.remote_address if channel is None else channel.client_id


def _drop_runs(rewind: Rewind, count: int) -> None:
    """Leave only the ``count`` newest runs."""
    while len(rewind.runs) > count:
        rewind.runs.pop(0).is_current = False


def _make_room(table: dict[_Queue, int]) -> None:
    while len(table) >= MAX_REWINDS:
        del table[next(iter(table))]
