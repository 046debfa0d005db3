"""Decides which pulls and commits belong to a queue's epoch (docs/spec/races.md E.18, F12).

A fenced reset raises the epoch of a queue. An epoch-aware client sends the epoch of its deliveries with every
pull and commit. The broker admits the request if that is the queue's current epoch.

Other clients send no epoch. For a queue whose epoch is above 0, the broker therefore remembers what it has
delivered to each connection since the reset. A connection has one of three states for the queue:

- *unknown*: after the reset, for a new connection, and after the broker's start. A pull is redirected to the
  stored offset with PULL_OFFSET_MOVED (21); then the state is *told*.
- *told*: a pull at exactly the offset of that response makes the connection *joined*. Any other pull is
  redirected again.
- *joined*: also entered by the response to QUERY_CONSUMER_OFFSET (14). Pulls within the range of deliveries
  are admitted. Any other pull is redirected, as in *told*; the range stays valid until the connection joins
  again.

The broker accepts a connection's commits within this range: from the offset at which the connection joined to
the end of the deliveries since. It therefore also accepts a late result of a delivery from before the reset
if the offset lies in the range, because nothing distinguishes the two.

``FencedCommits`` lists the refused commits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from rewindmq.broker.limits import MAX_ALL_DELIVERIES, MAX_DELIVERIES, MAX_FENCED_COMMITS
from rewindmq.broker.shares import Shares
from rewindmq.broker.store.tables.consumer_offset import OffsetRecord
from rewindmq.protocol.body.fenced_commit import FencedCommit, FencedCommitList
from rewindmq.protocol.remoting.connection import Connection

_NO_OFFSET = -1
_Queue = tuple[str, str, int]


@dataclass(slots=True)
class _Delivery:
    """The broker's deliveries to one connection from one queue, under one epoch.

    Attributes:
        told: the offset to which PULL_OFFSET_MOVED (21) redirected the connection; ``_NO_OFFSET`` without
            such a response, or if the connection has joined since.
        start, end: the range of deliveries; ``_NO_OFFSET`` until the connection joins.
    """

    epoch: int
    told: int = _NO_OFFSET
    start: int = _NO_OFFSET
    end: int = _NO_OFFSET

    def covers(self, offset: int) -> bool:
        return self.start >= 0 and self.start <= offset <= self.end

    def join(self, offset: int) -> None:
        self.told, self.start, self.end = _NO_OFFSET, offset, offset


class Fencing:
    """Tracks the deliveries of each connection, and admits or refuses its pulls and commits.

    Attributes:
        shares: the queues whose deliveries each connection has.
    """

    def __init__(self) -> None:
        self._connections: dict[Connection, dict[_Queue, _Delivery]] = {}
        self.shares = Shares("deliveries", MAX_DELIVERIES, MAX_ALL_DELIVERIES)

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._connections.pop(connection, None)
        self.shares.forget(connection)

    def on_query(self, connection: Connection, queue: _Queue, record: OffsetRecord) -> None:
        """Let the connection continue at ``record``, which the broker returned to QUERY_CONSUMER_OFFSET (14).

        Args:
            queue: group, topic and queue id.
        """
        delivery = self._delivery(connection, queue, record.epoch)
        # If the client queries while it consumes, its deliveries stay valid.
        if not delivery.covers(record.offset):
            delivery.join(record.offset)

    def admits_pull(
        self, connection: Connection, queue: _Queue, offset: int, epoch: int | None, record: OffsetRecord
    ) -> bool:
        """Return True if a pull belongs to the queue's epoch; if False, redirect it to the stored offset.

        Args:
            epoch: from the request; None from a client that is not epoch-aware.
            record: the stored offset and epoch; every pull is admitted if no offset is stored.
        """
        if record.offset < 0:
            return True
        if epoch is not None:
            return epoch == record.epoch
        if record.epoch == 0:
            return True
        delivery = self._delivery(connection, queue, record.epoch)
        if delivery.covers(offset):
            return True
        if offset == delivery.told:
            delivery.join(offset)
            return True
        delivery.told = record.offset
        return False

    def on_delivery(
        self, connection: Connection, queue: _Queue, next_offset: int, epoch: int, *, moved: bool
    ) -> None:
        """Record the response to an admitted pull.

        Args:
            next_offset: the client's next offset.
            moved: True if the pull's offset was out of range and the broker redirected it (21) to
                ``next_offset``.
        """
        delivery = self._delivery(connection, queue, epoch)
        if moved:
            delivery.join(next_offset)
        elif delivery.start >= 0:
            delivery.end = max(delivery.end, next_offset)

    def refuse_commit(
        self, connection: Connection, queue: _Queue, offset: int, epoch: int | None, record: OffsetRecord
    ) -> str | None:
        """Return why a commit does not belong to the queue's epoch, in one line; None if it does.

        Args:
            epoch, record: see ``admits_pull``.
        """
        if record.offset < 0:
            return None
        if epoch is not None:
            return None if epoch == record.epoch else f"of epoch {epoch}, and the queue is at {record.epoch}"
        if record.epoch == 0:
            return None
        delivery = self._connections.get(connection, {}).get(queue)
        if delivery is None or delivery.epoch != record.epoch or delivery.start < 0:
            return "without epoch, and nothing was delivered to its connection since the reset"
        if delivery.covers(offset):
            return None
        return f"without epoch, and {delivery.start} to {delivery.end} was delivered since the reset"

    def _delivery(self, connection: Connection, queue: _Queue, epoch: int) -> _Delivery:
        """Return the connection's deliveries; new ones if the epoch has changed.

        Without room for them, the connection's oldest are forgotten; if it has none, the new ones are.
        """
        deliveries = self._connections.get(connection, {})
        delivery = deliveries.get(queue)
        if delivery is not None and delivery.epoch == epoch:
            return delivery
        made = _Delivery(epoch)
        if delivery is not None:
            del deliveries[queue]
        elif self.shares.has_room(connection):
            self.shares.add(connection)
        elif deliveries:
            del deliveries[next(iter(deliveries))]
        else:
            return made
        self._connections.setdefault(connection, deliveries)[queue] = made
        return made


class FencedCommits:
    """The newest ``MAX_FENCED_COMMITS`` fenced commits, and their total since the broker started."""

    def __init__(self) -> None:
        self._commits: deque[FencedCommit] = deque(maxlen=MAX_FENCED_COMMITS)
        self._total = 0

    def add(self, commit: FencedCommit) -> None:
        """Add a commit; it replaces the oldest if the list is full."""
        self._commits.append(commit)
        self._total += 1

    def listed(self, group: str | None, topic: str | None) -> FencedCommitList:
        """Return the commits of a group and topic, oldest first; None means any."""
        commits = [
            commit
            for commit in self._commits
            if (group is None or commit.group == group) and (topic is None or commit.topic == topic)
        ]
        return FencedCommitList(commits, self._total)
