"""Divides the queues of a topic among the consumers of a group, for pulling and for POP.

Source: RocketMQ 5.5.1 ``QueryAssignmentProcessor#doLoadBalance`` and ``#allocate4Pop``. The clients' sorted
list is not needed: a client's share depends on its position and on the number of clients.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from rewindmq.protocol.message_queue import MessageQueue, averagely, by_circle
from rewindmq.protocol.pop.topics import ALL_QUEUES

# Client ids that one slice compares, in about 1 ms.
_IDS_PER_SLICE: Final = 20_000

Divide = Callable[[Sequence[MessageQueue], int, int], list[MessageQueue]]

STRATEGIES: Final[Mapping[str, Divide]] = MappingProxyType({"AVG": averagely, "AVG_BY_CIRCLE": by_circle})


class Place(NamedTuple):
    """The position of a client among the sorted clients of its group; None: it is not one of them."""

    position: int | None
    clients: int


def find_place(client_id: str, client_ids: Sequence[str]) -> Generator[None, None, Place]:
    """Return the client's place; yield after about 1 ms of work."""
    lower, is_listed = 0, False
    for start in range(0, len(client_ids), _IDS_PER_SLICE):
        part = client_ids[start : start + _IDS_PER_SLICE]
        lower += sum([each < client_id for each in part])
        is_listed = is_listed or client_id in part
        yield
    return Place(lower if is_listed else None, len(client_ids))


def pull_share(queues: Sequence[MessageQueue], place: Place, divide: Divide) -> list[MessageQueue]:
    """Return the queues that a client pulls; none if its group does not list it."""
    return [] if place.position is None else divide(queues, place.position, place.clients)


def pop_share(
    queues: Sequence[MessageQueue], place: Place, divide: Divide, share_queue_num: int
) -> list[MessageQueue]:
    """Return the queues that a client pops, each once.

    Args:
        share_queue_num: so many clients that follow in the list share their queues with this client. With 0
            or less, or if this means all clients, each client pops all queues of every broker.
    """
    position, clients = place
    if share_queue_num <= 0 or share_queue_num >= clients - 1:
        brokers = dict.fromkeys((queue.topic, queue.broker_name) for queue in queues)
        return [MessageQueue(topic, broker_name, ALL_QUEUES) for topic, broker_name in brokers]
    if position is None:
        return []
    if clients > len(queues):
        return [queues[position % len(queues)]] if queues else []
    shared: dict[MessageQueue, None] = {}
    for step in range(share_queue_num + 1):
        shared.update(dict.fromkeys(divide(queues, (position + step) % clients, clients)))
    return list(shared)
