"""314 CLONE_GROUP_OFFSET: give one group the stored offsets of another.

Kept from 4.9.4 ``AdminBrokerProcessor#cloneGroupOffset``: the topic's queues of the destination are replaced
as a whole, whatever it had there; success also where the source has nothing; a topic that is not here, or
that the online source does not subscribe to (unless ``offline``), is passed over; members of the destination
are not told, and overwrite it with their next commit. Marks of a server reset are neither copied nor taken
away (5.3.3 as well). Without a topic nothing is copied, in all releases: RocketMQ goes through the topics of
the source, but copies the one of the request each time. Changed: with ``cloneGroupOffsetOfAllTopics`` every
topic of the source is copied then. Refused with 1, before anything is copied: a destination that was reset in
fenced mode in the topic; a group name that none can have; more offsets than there may be.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.reset import CloneGroupOffsetRequestHeader
from rewindmq.protocol.names import check_group
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.reset_mode import ResetMode

CODE: Final = RequestCode.CLONE_GROUP_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(CloneGroupOffsetRequestHeader)
    check_group(header.dest_group)
    clones = {
        topic: context.offsets.offsets_of(header.src_group, topic) for topic in _topics(context, header)
    }
    clones = {topic: offsets for topic, offsets in clones.items() if offsets}
    for topic in clones:
        if context.offsets.has_epochs(header.dest_group, topic):
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"group {header.dest_group} was reset in fenced mode in topic {topic}, and is moved there by"
                f" 222 with resetMode={ResetMode.FENCED} only; nothing is copied",
            )
    try:
        context.offsets.replace(header.dest_group, clones)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"{error}; nothing is copied") from None
    return RemotingCommand(ResponseCode.SUCCESS)


def _topics(context: BrokerContext, header: CloneGroupOffsetRequestHeader) -> list[str]:
    """The topics to copy."""
    name = (header.topic or "").strip()
    if name:
        topics = [name]
    elif context.config.clone_group_offset_of_all_topics:
        topics = context.offsets.topics_of(header.src_group)
    else:
        topics = []
    source = None if header.offline else context.consumers.find(header.src_group)
    return [
        topic
        for topic in topics
        if context.topics.find(topic) is not None and (source is None or topic in source.subscriptions)
    ]
