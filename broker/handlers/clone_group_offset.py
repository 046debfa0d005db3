"""CLONE_GROUP_OFFSET (314): copy the stored offsets of one group to another.

Kept from 4.9.4 ``AdminBrokerProcessor#cloneGroupOffset``:

- The copy replaces all offsets that the destination has in the topic.
- The request succeeds even if the source has no offsets.
- The broker skips an unknown topic. It also skips a topic that the online source does not subscribe to,
  unless ``offline`` is set.
- The broker does not notify the destination's consumers, and their next commit overwrites the copy.
- Marks of server-side resets stay as they are, as in 5.3.3.
- A request without a topic copies nothing, in every release: RocketMQ iterates over the topics of the source,
  but copies the request's topic each time.

Changed: with ``cloneGroupOffsetOfAllTopics``, a request without a topic copies every topic of the source.
Refused with 1, before anything is copied: a destination that was reset in fenced mode in the topic; an
invalid group name; more offsets than the table can hold.
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
        topic: context.offsets.table.offsets_of(header.src_group, topic) for topic in _topics(context, header)
    }
    clones = {topic: offsets for topic, offsets in clones.items() if offsets}
    for topic in clones:
        if context.offsets.table.has_epochs(header.dest_group, topic):
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"group {header.dest_group} was reset in fenced mode in topic {topic}; only"
                f" INVOKE_BROKER_TO_RESET_OFFSET (222) with resetMode={ResetMode.FENCED} moves it there;"
                " nothing is copied",
            )
    before = {topic: context.offsets.table.offsets_of(header.dest_group, topic) for topic in clones}
    try:
        context.offsets.table.replace(header.dest_group, clones)
    except StoreError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"{error}; nothing is copied") from None
    for topic, offsets in clones.items():
        context.offsets.rewinds.on_reset(header.dest_group, topic, offsets, before[topic])
    return RemotingCommand(ResponseCode.SUCCESS)


def _topics(context: BrokerContext, header: CloneGroupOffsetRequestHeader) -> list[str]:
    """Return the topics to copy."""
    name = (header.topic or "").strip()
    if name:
        topics = [name]
    elif context.config.clone_group_offset_of_all_topics:
        topics = context.offsets.table.topics_of(header.src_group)
    else:
        topics = []
    source = None if header.offline else context.clients.consumers.find(header.src_group)
    return [
        topic
        for topic in topics
        if context.tables.topics.find(topic) is not None and (source is None or topic in source.subscriptions)
    ]
