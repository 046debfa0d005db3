"""Derives queues and broker addresses from a topic's route.

Specification: docs/spec/protocol.md 5.1, 7.6; docs/spec/broker.md B.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewindmq.protocol.body.route import QueueData, TopicRouteData
from rewindmq.protocol.message.sysflag import Perm
from rewindmq.protocol.message_queue import MessageQueue

MASTER_ID = 0


def broker_addresses(route: TopicRouteData) -> dict[str, dict[int, str]]:
    """Return ``{broker name: {broker id: address}}``."""
    return {broker.broker_name: dict(broker.broker_addrs) for broker in route.broker_datas}


def publish_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Return the queues that a producer may write to: brokers need write permission and a master.

    If the name server sends an order configuration, that replaces the queue counts
    (``MQClientInstance#topicRouteData2TopicPublishInfo``).
    """
    if route.order_topic_conf:
        return _ordered_queues(topic, route.order_topic_conf)
    with_master = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.perm & Perm.WRITE and data.broker_name in with_master
        for queue_id in range(data.write_queue_nums)
    ]


def _ordered_queues(topic: str, order_conf: str) -> list[MessageQueue]:
    queues: list[MessageQueue] = []
    for part in order_conf.split(";"):
        name, _, count = part.partition(":")
        if count.isascii() and count.isdecimal():
            queues.extend(MessageQueue(topic, name, queue_id) for queue_id in range(int(count)))
    return queues


def subscribe_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """Return the queues that a consumer may read, sorted."""
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if data.perm & Perm.READ
        for queue_id in range(data.read_queue_nums)
    )


def template_route(route: TopicRouteData, default_topic_queue_nums: int) -> TopicRouteData:
    """Return a new topic's route, made from the auto-create template's route.

    Args:
        default_topic_queue_nums: the most queues per broker.
    """
    queues = [
        QueueData(
            broker_name=data.broker_name,
            read_queue_nums=min(default_topic_queue_nums, data.read_queue_nums),
            write_queue_nums=min(default_topic_queue_nums, data.read_queue_nums),
            perm=data.perm,
        )
        for data in route.queue_datas
    ]
    return TopicRouteData(queue_datas=queues, broker_datas=route.broker_datas)


class PublishInfo:
    """A producer's view of a topic: its queues, taken in turn.

    Attributes:
        queues: the queues that can be sent to.
        turn: the number of the latest turn, which chose the queue ``turn % len(queues)``.
    """

    __slots__ = ("queues", "turn")

    def __init__(self, queues: Sequence[MessageQueue], turn: int) -> None:
        self.queues = queues
        self.turn = turn

    def select(self, failed_broker: str | None = None) -> MessageQueue:
        """Return the next queue in turn, on another broker than ``failed_broker`` if there is one."""
        queues = self.queues
        count = len(queues)
        if failed_broker is not None:
            for _ in range(count):
                self.turn += 1
                queue = queues[self.turn % count]
                if queue.broker_name != failed_broker:
                    return queue
        self.turn = turn = self.turn + 1
        return queues[turn % count]


def find_address(
    table: Mapping[str, Mapping[int, str]],
    broker_name: str,
    broker_id: int = MASTER_ID,
    *,
    exact: bool = False,
) -> str | None:
    """Return the address of ``broker_id``; if it is missing and not ``exact``, that of the lowest id."""
    addresses = table.get(broker_name)
    if not addresses:
        return None
    address = addresses.get(broker_id)
    if address is None and not exact:
        address = addresses[min(addresses)]
    return address
