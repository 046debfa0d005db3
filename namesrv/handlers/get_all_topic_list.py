"""GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206): return the names of all topics that have a route.

Kept: the list includes system, retry and dead-letter topics.
Not kept: the 5.x option that makes the name server refuse this request.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> Reply:
    routes = context.routes
    return context.large_responses.reply(
        request, routes.topics_in_memory, lambda: TopicList(topic_list=routes.topics())
    )
