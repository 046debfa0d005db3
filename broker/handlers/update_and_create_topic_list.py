"""UPDATE_AND_CREATE_TOPIC_LIST (18): create several topics, or change their queues and permissions.

Kept from 5.3.3 ``AdminBrokerProcessor#updateAndCreateTopicList``: checks, codes and remarks are those of
UPDATE_AND_CREATE_TOPIC (17), see ``update_and_create_topic``. Attributes have signed names, such as
``+message.type``. An empty list succeeds.
Changed: a refusal changes nothing; 5.3.3 keeps the topics before an invalid attribute. If a topic of the list
is unchanged, 5.3.3 returns SUCCESS and ignores the other topics; this broker creates them.
Refused with 1: more than 2,000 topics; a request to a slave. Refused with 3: the request under v42 and v49,
as by brokers before 5.3.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.master_only import check_master
from rewindmq.broker.handlers.shared.topic_settings import changed_attributes, check_settings
from rewindmq.broker.limits import check_list
from rewindmq.protocol.body.registration import CreateTopicListRequestBody, TopicConfig
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.UPDATE_AND_CREATE_TOPIC_LIST


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    check_master(context.config)
    topics = decode_body(request, CreateTopicListRequestBody).topic_config_list
    check_list("topics", len(topics))
    checked = _checked(context, topics)
    context.tables.topics.update_all(checked, announce=False)
    context.background.registration.mark_due(checked)
    return _registered(context, checked)


def _checked(context: BrokerContext, topics: Iterable[TopicConfig]) -> dict[str, TopicConfig]:
    """Return the topics by name, with their attributes after the request; the last of a name wins."""
    found: dict[str, TopicConfig] = {}
    for topic in topics:
        check_settings(context, topic)
        known = found.get(topic.topic_name) or context.tables.topics.find(topic.topic_name)
        topic.attributes = changed_attributes(context, known, topic.attributes or {})
        found[topic.topic_name] = topic
    return found


async def _registered(context: BrokerContext, topics: Collection[str]) -> RemotingCommand:
    await context.tables.flush.saved()
    await context.background.registration.register(topics)
    return RemotingCommand(ResponseCode.SUCCESS)
