"""UPDATE_AND_CREATE_TOPIC (17): create a topic, or change its queues and permission.

Kept from 4.9.4 ``AdminBrokerProcessor#updateAndCreateTopic``: the broker refuses reserved names. It writes
topics.json and registers with the name servers before it responds. Only v53 stores ``order``.
v53 stores attributes. It refuses invalid changes with 1 and 5.3.3's remarks, and the message type MIXED with
29 unless ``enableMixedMessageType`` is on. Like 5.3.3's broker it does not compare messages with
``message.type``. Other profiles ignore attributes, as 4.x does, except ``cleanup.policy``.
Under v53, as in 5.3.3, the broker registers changed topics only. It neither stores nor registers a topic that
the request does not change.
Changed under v42 and v49: the broker registers all topics, not only the new one.
Refused with 1: a request to a slave, as in 4.9.4; ``queue.type=BatchCQ``.
Refused with 1 (under v53 with INVALID_PARAMETER, 29): numbers out of range; an unknown filter type, which
4.9.4 accepts.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.master_only import check_master
from rewindmq.broker.handlers.shared.topic_settings import changed_attributes, check_settings
from rewindmq.broker.tables.topic_attributes import altered_attributes, attributes_before_5
from rewindmq.protocol.body.registration import TopicConfig, TopicFilterType
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.topic_attributes import parse_attributes

CODE: Final = RequestCode.UPDATE_AND_CREATE_TOPIC


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    check_master(context.config)
    header = request.decode_header(CreateTopicRequestHeader)
    topic = _checked(context, header)
    topic.attributes = _attributes(context, header)
    if context.profile.registers_changes and _is_known(context, topic):
        return RemotingCommand(ResponseCode.SUCCESS)
    context.tables.topics.update(topic, announce=False)
    context.background.registration.mark_due((topic.topic_name,))
    await context.tables.flush.saved()
    await context.background.registration.register((topic.topic_name,))
    return RemotingCommand(ResponseCode.SUCCESS)


def _is_known(context: BrokerContext, topic: TopicConfig) -> bool:
    """True if the request changes nothing: an earlier one has saved and registered this topic."""
    name = topic.topic_name
    return (
        # As in 5.3.3, a topic with attributes counts as changed.
        not topic.attributes
        and topic == context.tables.topics.find(name)
        and context.tables.topics.is_saved(name)
        and not context.background.registration.is_due(name)
    )


def _checked(context: BrokerContext, header: CreateTopicRequestHeader) -> TopicConfig:
    topic = TopicConfig(
        header.topic,
        read_queue_nums=header.read_queue_nums,
        write_queue_nums=header.write_queue_nums,
        perm=header.perm,
        topic_sys_flag=header.topic_sys_flag or 0,
        order=header.order and context.profile.stores_topic_order,
    )
    check_settings(context, topic)
    if header.topic_filter_type not in TopicFilterType.__members__:
        raise RequestError(
            context.profile.bad_queue_code,
            f"topicFilterType {header.topic_filter_type!r} is neither SINGLE_TAG nor MULTI_TAG",
        )
    topic.topic_filter_type = TopicFilterType(header.topic_filter_type)
    return topic


def _attributes(context: BrokerContext, header: CreateTopicRequestHeader) -> dict[str, str] | None:
    text, known = header.attributes or "", context.tables.topics.find(header.topic)
    if context.profile.knows_attributes:
        return changed_attributes(context, known, parse_attributes(text))
    return altered_attributes(known, attributes_before_5(text))
