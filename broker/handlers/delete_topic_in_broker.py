"""DELETE_TOPIC_IN_BROKER (215): remove a topic's configuration and its queues.

Kept from 4.9.4 ``AdminBrokerProcessor#deleteTopic``: the request succeeds for an unknown topic. The broker
does not tell the name servers, and keeps the groups' offsets. The messages stay in the log until they expire.
Changed: the log has a record of the deletion, which is durable before the response, so that a restart never
brings messages of a deleted topic back.
Refused with 1: an invalid name, a system topic, a request to a slave, or one during which the disk fails.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.master_only import check_master
from rewindmq.broker.handlers.shared.unused_topics import remove_unused_topics
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.names import check_not_system_topic, check_topic
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.DELETE_TOPIC_IN_BROKER


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    check_master(context.config)
    before = context.table_flush.versions
    name = request.decode_header(DeleteTopicRequestHeader).topic
    check_topic(name)
    check_not_system_topic(name, context.profile.system_topics)
    if context.topics.is_built_in(name):
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"The topic[{name}] is conflict with system topic.")
    try:
        context.store.cleaner.end_topic(name)
        context.topics.delete(name)
        context.stats.on_topic_deleted(name)
        await remove_unused_topics(context)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    if context.table_flush.has_changed(before):
        await context.table_flush.saved()
    return RemotingCommand(ResponseCode.SUCCESS)
