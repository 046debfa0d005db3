"""Which queues of a topic belong to which client of a group (docs/spec/client.md C.5).

Every client computes the whole division from the same two sorted lists and keeps its own share; nobody
coordinates. Source: RocketMQ 4.9.4 ``client.consumer.rebalance.AllocateMessageQueue*``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import md5
from typing import Final, Protocol

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue


class AllocateStrategy(Protocol):
    """A rule of division."""

    @property
    def name(self) -> str:
        """The name RocketMQ knows the rule by."""

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The share of ``client_id``.

        Args:
            group: the consumer group, for messages only.
            client_id: this client; when ``client_ids`` lacks it the share is empty.
            queues: every readable queue of one topic, sorted.
            client_ids: every client of the group, sorted.
        """


class AllocateAveragely:
    """Neighbouring queues in equal portions; the first clients take one more when it does not divide."""

    name: Final = "AVG"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        index = client_ids.index(client_id)
        share, larger = divmod(len(queues), len(client_ids))
        start = index * share + min(index, larger)
        return list(queues[start : start + share + (index < larger)])


class AllocateByCircle:
    """Queues dealt out one by one, like cards."""

    name: Final = "AVG_BY_CIRCLE"

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if client_id not in client_ids:
            return []
        return list(queues[client_ids.index(client_id) :: len(client_ids)])


class AllocateByConfig:
    """A fixed list, whoever else is there."""

    name: Final = "CONFIG"

    def __init__(self, queues: Sequence[MessageQueue]) -> None:
        self._queues = tuple(queues)

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        return list(self._queues)


class AllocateByMachineRoom:
    """Only queues of brokers in the given rooms; a broker's room is what its name says before ``@``.

    Unlike the average rule, the queues that do not divide go one each to the first clients, from the end
    of the list.
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
    """The first four bytes of the MD5, as RocketMQ's ring reads them (``ConsistentHashRouter.MD5Hash``)."""
    return int.from_bytes(md5(text.encode(), usedforsecurity=False).digest()[:4], "big")


class AllocateConsistentHash:
    """Clients and queues on one hash ring: a client that comes or goes moves few queues.

    Args:
        virtual_nodes: points per client on the ring, at least 0.
        hash_function: replaces MD5.

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
