"""GET_TOPICS_BY_CLUSTER (224): return the names of all topics that have queues in a cluster.

Kept: an empty list for an unknown cluster.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import GetTopicsByClusterRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_TOPICS_BY_CLUSTER


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(GetTopicsByClusterRequestHeader)
    routes = context.routes
    return context.large_responses.reply_in_slices(
        request, routes.topics_in_memory, _topic_list(routes.topics_of_cluster(header.cluster))
    )


def _topic_list(topics: Generator[None, None, list[str]]) -> Generator[None, None, TopicList]:
    return TopicList(topic_list=(yield from topics))
