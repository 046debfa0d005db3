"""Queues and addresses from a topic's route."""

from __future__ import annotations

from rewindmq import MessageQueue
from rewindmq.client.core.route import PublishInfo, publish_queues, subscribe_queues, template_route
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.message.sysflag import Perm

Q0, Q1 = MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1)


def _route(**queue: int) -> TopicRouteData:
    fields = {"read_queue_nums": 2, "write_queue_nums": 2, "perm": 6, **queue}
    return TopicRouteData(
        [QueueData("broker-a", **fields), QueueData("broker-s", **fields)],
        [BrokerData("C", "broker-a", {0: "a:1"}), BrokerData("C", "broker-s", {1: "s:1"})],
    )


def test_producers_use_only_masters_with_write_permission() -> None:
    assert publish_queues("T", _route(write_queue_nums=3)) == [Q0, Q1, MessageQueue("T", "broker-a", 2)]
    assert publish_queues("T", _route(perm=int(Perm.READ))) == []
    route = _route()
    route.order_topic_conf = "broker-a:1;broker-b:x"
    assert publish_queues("T", route) == [Q0]


def test_consumers_use_readable_queues_of_every_broker() -> None:
    queues = subscribe_queues("T", _route(read_queue_nums=1))
    assert queues == [Q0, MessageQueue("T", "broker-s", 0)]
    assert subscribe_queues("T", _route(perm=int(Perm.WRITE))) == []


def test_the_template_gives_no_more_queues_than_asked_for() -> None:
    route = template_route(_route(read_queue_nums=8, write_queue_nums=8), 4)
    assert {data.write_queue_nums for data in route.queue_datas} == {4}


def test_another_broker_is_chosen_after_a_failure() -> None:
    other = MessageQueue("T", "broker-b", 0)
    info = PublishInfo([Q0, Q1, other], 0)
    assert {info.select("broker-a") for _ in range(5)} == {other}
    assert PublishInfo([Q0], 0).select("broker-a") == Q0
