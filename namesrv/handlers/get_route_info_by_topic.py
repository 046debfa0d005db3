"""GET_ROUTEINFO_BY_TOPIC (105): return the brokers and queues of a topic.

Kept: the request fails with TOPIC_NOT_EXIST (17) and RocketMQ's remark unless the topic has queues and at
least one of their brokers is registered. The request never creates a topic. ``orderTopicConf`` is present
only with ``orderMessageEnable``. The requester's version decides between strict and legacy JSON; 4.2.0 always
writes legacy JSON, with ``topicSynFlag``. Only v53 has ``enableActingMaster``.
Changed: an invalid topic name fails with 1 and a remark that says why.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.namesrv.kv_config import ORDER_TOPIC_CONFIG
from rewindmq.namesrv.route_info import copied
from rewindmq.namesrv.route_text import route_text
from rewindmq.protocol.body.old_route import OldTopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader
from rewindmq.protocol.names import check_topic, faq_suffix
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.remoting.dispatch import accepts_standard_json
from rewindmq.protocol.remoting.slices.large_responses import SMALL_ENTRIES

CODE: Final = RequestCode.GET_ROUTEINFO_BY_TOPIC


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> Reply:
    topic = request.decode_header(GetRouteInfoRequestHeader).topic
    route = context.routes.find_route(topic)
    if route is None:
        check_topic(topic)
        raise RequestError(
            ResponseCode.TOPIC_NOT_EXIST,
            f"No topic route info in name server for the topic: {topic}{faq_suffix(context.profile.faq_url)}",
        )
    if context.config.order_message_enable:
        route.order_topic_conf = context.kv_configs.get(ORDER_TOPIC_CONFIG, topic)
    old = context.profile.writes_old_routes
    if len(route.queue_datas) <= SMALL_ENTRIES and request.serialize_type is not SerializeType.MSGPACK:
        text = route_text(route, standard=accepts_standard_json(request), old=old)
        return RemotingCommand(ResponseCode.SUCCESS, body=text)
    route = copied(route)
    body = OldTopicRouteData.of(route) if old else route
    return context.large_responses.reply(request, len(route.queue_datas), lambda: body)
