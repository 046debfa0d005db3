"""Checks of a topic's settings for UPDATE_AND_CREATE_TOPIC (17) and UPDATE_AND_CREATE_TOPIC_LIST (18)."""

from __future__ import annotations

from collections.abc import Mapping

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.tables.topic_attributes import MESSAGE_TYPE, MIXED, altered_attributes
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.limits import MAX_QUEUE_NUMS
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm
from rewindmq.protocol.names import check_not_system_topic, check_topic
from rewindmq.protocol.topic_attributes import ADD

_ALL_PERMS = PERM_READ_WRITE | Perm.INHERIT


def check_settings(context: BrokerContext, topic: TopicConfig) -> None:
    """Refuse invalid and reserved names, and numbers out of range.

    Raises:
        RequestError: SYSTEM_ERROR (1), under v53 INVALID_PARAMETER (29).
    """
    try:
        _check(context, topic)
    except RequestError as error:
        raise RequestError(context.profile.bad_queue_code, error.remark) from None


def changed_attributes(
    context: BrokerContext, known: TopicConfig | None, changes: Mapping[str, str]
) -> dict[str, str] | None:
    """Return a topic's attributes after a request under v53.

    Args:
        known: the topic before; None if the request creates it.
        changes: value by signed name, such as ``+message.type``.

    Raises:
        RequestError: INVALID_PARAMETER (29) for the message type MIXED unless ``enableMixedMessageType`` is
            on, else SYSTEM_ERROR (1), see ``altered_attributes``.
    """
    if changes.get(ADD + MESSAGE_TYPE) == MIXED and not context.config.enable_mixed_message_type:
        raise RequestError(ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported.")
    return altered_attributes(known, changes)


def _check(context: BrokerContext, topic: TopicConfig) -> None:
    name = topic.topic_name
    check_topic(name)
    check_not_system_topic(name, context.profile.system_topics)
    if context.tables.topics.is_built_in(name):
        raise _illegal(f"The topic[{name}] is conflict with system topic.")
    for key, value, limit in (
        ("readQueueNums", topic.read_queue_nums, MAX_QUEUE_NUMS),
        ("writeQueueNums", topic.write_queue_nums, MAX_QUEUE_NUMS),
        ("perm", topic.perm, _ALL_PERMS),
    ):
        if not 0 <= value <= limit:
            raise _illegal(f"{key} {value} is not in 0..{int(limit)}")


def _illegal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
