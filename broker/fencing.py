"""Which pulls and commits belong to a queue's epoch (docs/spec/races.md E.18, F12).

A fenced reset raises the epoch of a queue. A client that knows epochs sends with every pull and commit the
one its deliveries are of; it has to be the queue's. For any other client, on a queue whose epoch is above 0,
the broker remembers what it delivered to that connection since the reset:

| state | entered by | then |
|---|---|---|
| unknown | the reset; a new connection; the broker's start | a pull is told the stored offset (21) -> told |
| told | that answer | a pull at exactly that offset -> joined; any other is told again |
| joined | that, or the answer to a 14 | pulls go on within what was delivered; others are told -> told |

A commit is accepted when joined, from where it joined up to the end of what was delivered. So a late result
of a delivery before the reset can still pass where its offset lies within what came again: nothing tells the
two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.limits import MAX_DELIVERIES
from rewindmq.broker.store.consumer_offset import OffsetRecord
from rewindmq.protocol.remoting.connection import Connection

_NOWHERE = -1
_Queue = tuple[str, str, int]


@dataclass(slots=True)
class _Delivery:
    """What one connection was told and given of a queue under one epoch.

    Attributes:
        told: the offset a 21 sent it to, ``_NOWHERE`` when none did or it has joined since.
        start, end: from where to where it was delivered to; ``_NOWHERE`` until it has joined.
    """

    epoch: int
    told: int = _NOWHERE
    start: int = _NOWHERE
    end: int = _NOWHERE

    def covers(self, offset: int) -> bool:
        return self.start >= 0 and self.start <= offset <= self.end

    def join(self, offset: int) -> None:
        self.told, self.start, self.end = _NOWHERE, offset, offset


class Fencing:
    """The deliveries of each connection, and what follows from them."""

    def __init__(self) -> None:
        self._connections: dict[Connection, dict[_Queue, _Delivery]] = {}

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        self._connections.pop(connection, None)

    def on_query(self, connection: Connection, queue: _Queue, record: OffsetRecord) -> None:
        """A 14 was answered with ``record``; from there the connection may go on.

        Args:
            queue: group, topic and queue id.
        """
        delivery = self._delivery(connection, queue, record.epoch)
        # A client may ask while it consumes: what it has been given stays its own.
        if not delivery.covers(record.offset):
            delivery.join(record.offset)

    def admits_pull(
        self, connection: Connection, queue: _Queue, offset: int, epoch: int | None, record: OffsetRecord
    ) -> bool:
        """Whether a pull belongs to the queue's epoch; if not, its answer is to be 21 with the stored offset.

        Args:
            epoch: as sent, None from a client that knows none.
            record: what is stored; without an offset there is nothing to keep to.
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
        """A pull that was admitted is answered.

        Args:
            next_offset: where the client goes on.
            moved: the answer was 21, its offset being out of range: the broker itself sends it there.
        """
        delivery = self._delivery(connection, queue, epoch)
        if moved:
            delivery.join(next_offset)
        elif delivery.start >= 0:
            delivery.end = max(delivery.end, next_offset)

    def refuse_commit(
        self, connection: Connection, queue: _Queue, offset: int, epoch: int | None, record: OffsetRecord
    ) -> str | None:
        """Why a commit does not belong to the queue's epoch, in one line; None when it does.

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
        """The connection's, emptied where a reset came in between."""
        deliveries = self._connections.setdefault(connection, {})
        delivery = deliveries.get(queue)
        if delivery is None or delivery.epoch != epoch:
            deliveries.pop(queue, None)
            if len(deliveries) >= MAX_DELIVERIES:
                del deliveries[next(iter(deliveries))]
            delivery = deliveries[queue] = _Delivery(epoch)
        return delivery
