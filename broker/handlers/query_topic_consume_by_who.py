"""QUERY_TOPIC_CONSUME_BY_WHO (300): return the groups that consume a topic.

Kept from 4.9.4 ``AdminBrokerProcessor#queryTopicConsumeByWho``: online groups that subscribe to the topic,
and groups that have offsets in it.
Changed: the names are sorted.
Refused: nothing; an unknown topic has no groups.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.group import GroupList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import QueryTopicConsumeByWhoRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    topic = request.decode_header(QueryTopicConsumeByWhoRequestHeader).topic
    groups = {*context.clients.consumers.subscribers_of(topic), *context.offsets.table.groups_of(topic)}
    return RemotingCommand(ResponseCode.SUCCESS, body=GroupList(sorted(groups)))
