"""DELETE_TOPIC_IN_NAMESRV (216): remove a topic's routes.

Kept: the request succeeds for an unknown topic. With ``clusterName``, 4.9.4 and 5.x remove only the routes to
that cluster's brokers; 4.2.0 removes all. A broker that still has the topic restores the route with its next
changed registration.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import DeleteTopicFromNamesrvRequestHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.DELETE_TOPIC_IN_NAMESRV


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(DeleteTopicFromNamesrvRequestHeader)
    cluster = header.cluster_name or None
    if context.config.profile.release is Profile.V42:
        cluster = None
    context.routes.delete_topic(header.topic, cluster)
    return RemotingCommand(ResponseCode.SUCCESS)
