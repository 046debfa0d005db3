"""GET_SYSTEM_TOPIC_LIST_FROM_BROKER (305): return the names that applications must not use for topics.

Kept from 4.9.7 ``AdminBrokerProcessor#getSystemTopicListFromBroker``: the topics need not exist.
Changed: the names are sorted.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    topics = context.profile.system_topics | context.tables.topics.built_in
    return RemotingCommand(ResponseCode.SUCCESS, body=TopicList(sorted(topics)))
