"""DELETE_TOPIC_IN_BROKER (215): remove a topic's configuration and its queues.

Kept from 4.9.4 ``AdminBrokerProcessor#deleteTopic``: the request succeeds for an unknown topic. The broker
does not tell the name servers. The messages stay in the log until they expire. Up to 4.9 the broker keeps the
groups' offsets, so a group skips as many messages of a new topic of that name. From 5.0 on (5.5.1
``ConsumerOffsetManager#cleanOffsetByTopic``), offsets and marks of server-side resets go with the topic, and
under v53 the retry topics of the groups that pop it. Changed: the log has a record of the deletion, so that a
restart never brings messages of a deleted topic back. The response waits until this record is durable, and
until the offsets are removed on disk. The epochs of fenced resets go with the offsets. Refused with 1 (under
v53 with INVALID_PARAMETER, 29): an invalid name, or a system topic. Refused with 1: a request to a slave, or
one during which the disk fails.
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
from rewindmq.protocol.names import check_topic, is_system_topic
from rewindmq.protocol.pop.topics import pop_retry_topic
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.slices.run import run_slices

CODE: Final = RequestCode.DELETE_TOPIC_IN_BROKER


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    check_master(context.config)
    before = context.tables.flush.versions
    name = request.decode_header(DeleteTopicRequestHeader).topic
    bad_name = context.profile.bad_queue_code
    check_topic(name, bad_name)
    if is_system_topic(name, context.profile.system_topics) or context.tables.topics.is_built_in(name):
        raise RequestError(bad_name, f"The topic[{name}] is conflict with system topic.")
    removed: list[str] = []
    try:
        for topic in (name, *_retry_topics(context, name)):
            removed += await _delete(context, topic)
        await remove_unused_topics(context)
        if context.tables.flush.has_changed(before):
            await context.tables.flush.saved()
        await context.offsets.flush.saved(removed)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None
    return RemotingCommand(ResponseCode.SUCCESS)


def _retry_topics(context: BrokerContext, topic: str) -> list[str]:
    """Return the retry topics of the groups that pop the topic."""
    if context.pop is None or not context.config.clear_retry_topic_when_delete_topic:
        return []
    names = (
        pop_retry_topic(topic, group, v2=v2)
        for group in context.offsets.table.groups_of(topic)
        for v2 in (False, True)
    )
    return [name for name in names if context.tables.topics.find(name) is not None]


async def _delete(context: BrokerContext, topic: str) -> list[str]:
    """Remove one topic; return the keys of the offsets that went with it.

    Raises:
        StoreError: the disk failed.
    """
    context.store.cleaner.end_topic(topic)
    context.tables.topics.delete(topic)
    context.offsets.rewinds.remove(topic=topic)
    context.stats.on_topic_deleted(topic)
    if context.pop is not None:
        context.pop.on_deleted(topic=topic)
    if not context.profile.offsets_go_with_topic:
        return []
    removed = await run_slices(context.runtime.timers, context.offsets.table.remove_topic(topic))
    context.offsets.marks.remove_topic(topic)
    return removed
