"""Allocation strategies: divide the queues of a topic among the clients of a group (docs/spec/client.md C.5).

Every client computes the division from the same two sorted lists and keeps its own share; there is no
coordinator. Source: RocketMQ 4.9.4 ``client.consumer.rebalance.AllocateMessageQueue*``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import md5
from typing import Final, Protocol

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue, averagely, by_circle


class AllocateStrategy(Protocol):
    """Divides the queues of a topic among clients."""

    @property
    def name(self) -> str:
        """Name of the strategy in RocketMQ."""

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the queues of ``client_id``.

        Args:
            group: the consumer group, for log messages only.
            client_id: this client; if ``client_ids`` lacks it, the result is empty.
            queues: every readable queue of one topic, sorted.
            client_ids: every client of the group, sorted.
        """


class AllocateAveragely:
    """Gives each client a block of adjacent queues; the first clients share the remainder, one queue each."""

    name: Final = "AVG"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        return averagely(queues, client_ids.index(client_id), len(client_ids))


class AllocateByCircle:
    """Gives the queues to the clients in turn, one by one."""

    name: Final = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        return by_circle(queues, client_ids.index(client_id), len(client_ids))


class AllocateByConfig:
    """Gives a fixed list of queues, independent of other clients."""

    name: Final = "CONFIG"

    def __init__(self, queues: Sequence[MessageQueue]) -> None:
        self._queues = tuple(queues)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        return list(self._queues)


class AllocateByMachineRoom:
    """Divides only queues of brokers in the given machine rooms.

    A broker's room is its name before ``@``. If the queues cannot be divided evenly, each of the first
    clients also gets one queue from the end of the list, unlike with ``AllocateAveragely``.
    """

    name: Final = "MACHINE_ROOM"

    def __init__(self, rooms: Sequence[str]) -> None:
        self._rooms = frozenset(rooms)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        index = client_ids.index(client_id)
        near = [queue for queue in queues if self._is_near(queue.broker_name)]
        share, rest = divmod(len(near), len(client_ids))
        mine = near[index * share : (index + 1) * share]
        if index < rest:
            mine.append(near[share * len(client_ids) + index])
        return mine

    def _is_near(self, broker_name: str) -> bool:
        room, separator, rest = broker_name.partition("@")
        return bool(separator) and "@" not in rest and room in self._rooms


def md5_hash(text: str) -> int:
    """Return the first four bytes of the MD5 as RocketMQ does (``ConsistentHashRouter.MD5Hash``)."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


class AllocateConsistentHash:
    """Places clients and queues on one hash ring; a client that joins or leaves moves few queues.

    Args:
        virtual_nodes: points per client on the ring, at least 0.
        hash_function: used instead of MD5.

    Raises:
        ClientError: ``virtual_nodes`` is negative.
    """

    name: Final = "CONSISTENT_HASH"

    def __init__(self, virtual_nodes: int = 10, hash_function: Callable[[str], int] = md5_hash) -> None:
        if virtual_nodes < 0:
            raise ClientError(f"illegal virtualNodeCnt :{virtual_nodes}")
        self._virtual_nodes = virtual_nodes
        self._hash = hash_function

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        ring = {
            self._hash(f"{owner}-{replica}"): owner
            for owner in client_ids
            for replica in range(self._virtual_nodes)
        }
        if not ring:
            return []
        points = sorted(ring)
        return [
            queue
            for queue in queues
            if ring[points[bisect_left(points, self._hash(str(queue))) % len(points)]] == client_id
        ]
