"""GET_SYSTEM_TOPIC_LIST_FROM_NS (304): return the topics named after clusters and brokers.

Kept: the response also has one broker's address, which the client asks for the other system topics
(GET_SYSTEM_TOPIC_LIST_FROM_BROKER, 305).
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> Reply:
    topics, address = context.routes.system_topics()
    body = TopicList(topic_list=topics, broker_addr=address or None)
    return context.large_responses.reply(request, len(topics), lambda: body)
