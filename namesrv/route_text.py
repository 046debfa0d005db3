"""The text of a topic's route, put together from the texts of its brokers and queues.

A name server writes the same few brokers into all routes, so it keeps their texts. The bytes are
those of ``encode_body``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from rewindmq.protocol.body.old_route import OldQueueData
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.codec.body import plain_value
from rewindmq.protocol.codec.fastjson import dumps

# Texts of 100 to 200 bytes. A broker's topics mostly have the same few numbers of queues.
_KEPT: Final = 8_192
# A text of more addresses is not kept: a broker may have 10,000, and each change would keep another text.
_FEW_ADDRESSES: Final = 8


def route_text(route: TopicRouteData, *, standard: bool, old: bool) -> bytes:
    """Return the JSON body of a route.

    Args:
        standard: strict JSON; else as fastjson writes it.
        old: the form before 4.9.0, which is never strict.

    Raises:
        BodyError: a text contains a lone surrogate.
    """
    standard = standard and not old
    brokers = b",".join(
        [
            (_broker_text if len(broker.broker_addrs) <= _FEW_ADDRESSES else _new_broker_text)(
                broker.cluster,
                broker.broker_name,
                tuple(broker.broker_addrs.items()),
                broker.enable_acting_master,
                standard,
            )
            for broker in route.broker_datas
        ]
    )
    queues = b",".join(
        [
            _queue_text(
                queue.broker_name,
                queue.read_queue_nums,
                queue.write_queue_nums,
                queue.perm,
                queue.topic_sys_flag,
                standard,
                old,
            )
            for queue in route.queue_datas
        ]
    )
    filters = _text(route.filter_server_table, standard)
    order = b""
    if route.order_topic_conf is not None:
        order = b',"orderTopicConf":%b' % _text(route.order_topic_conf, standard)
    # In fastjson's order, that of the alphabet.
    return b'{"brokerDatas":[%b],"filterServerTable":%b%b,"queueDatas":[%b]}' % (
        brokers,
        filters,
        order,
        queues,
    )


def _new_broker_text(
    cluster: str,
    name: str,
    addresses: tuple[tuple[int, str], ...],
    acting_master: bool | None,
    standard: bool,
) -> bytes:
    return _text(BrokerData(cluster, name, dict(addresses), acting_master), standard)


_broker_text: Final = lru_cache(_KEPT)(_new_broker_text)


@lru_cache(_KEPT)
def _queue_text(name: str, reads: int, writes: int, perm: int, flag: int, standard: bool, old: bool) -> bytes:
    queues = QueueData(name, reads, writes, perm, flag)
    return _text(OldQueueData.of(queues) if old else queues, standard)


def _text(value: Any, standard: bool) -> bytes:
    return dumps(plain_value(value), standard=standard).encode()
