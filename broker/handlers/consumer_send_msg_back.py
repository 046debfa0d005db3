"""CONSUMER_SEND_MSG_BACK (36): store a message for retry, or among the dead letters of its group.

Kept from 4.9.4 ``SendMessageProcessor#asyncConsumerSendMsgBack``:

- The broker reads the message from the log and stores a copy in ``%RETRY%<group>``. The copy has RETRY_TOPIC,
  ORIGIN_MESSAGE_ID, WAIT=false, one more reconsumeTimes, and the requested delay level (0 means
  3 + reconsumeTimes).
- The copy goes to ``%DLQ%<group>`` after the last retry, or if the level is negative.
- The broker creates and registers both topics.
- If the group has no retry queues, the request succeeds and the broker stores nothing.
- The request fails with SUBSCRIPTION_GROUP_NOT_EXIST (26), NO_PERMISSION (16), or, if there is no message at
  the position, with 1 and ``look message by offset failed, <n>``.

By release: in 4.2.0 a dead letter keeps the delay of its last retry.
Changed: a missing ``maxReconsumeTimes`` means the group's limit under v42, too; RocketMQ 4.2.0 fails. A
position inside a record fails like a position without a message; RocketMQ parses the bytes there as a record.
Refused with 1, as if there were no message: the position of a half message, because no consumer ever received
it.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.delay.hook import readable_properties
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.message import format_host
from rewindmq.protocol.message.properties import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    TAGS,
    WAIT,
    format_properties,
)
from rewindmq.protocol.message.record import RecordError, decode_record
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag, Perm, TopicSysFlag
from rewindmq.protocol.names import TRANS_HALF_TOPIC, dlq_topic, faq_suffix, retry_topic
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.text import java_hash
from rewindmq.protocol.version import MQVersion

CODE: Final = RequestCode.CONSUMER_SEND_MSG_BACK

_FIRST_LEVEL: Final = 3
_VISIBLE: Final = (0, int(MessageSysFlag.TRANSACTION_COMMIT))


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    before = context.tables.flush.versions
    header = request.decode_header(ConsumerSendMsgBackRequestHeader)
    group = _check(context, header)
    if group.retry_queue_nums <= 0:
        return RemotingCommand(ResponseCode.SUCCESS)
    sys_flag = int(TopicSysFlag.UNIT_SUB) if header.unit_mode else 0
    retry = context.tables.topics.ensure(
        retry_topic(header.group), group.retry_queue_nums, topic_sys_flag=sys_flag
    )
    if not retry.perm & Perm.WRITE:
        raise RequestError(
            ResponseCode.NO_PERMISSION, f"the topic[{retry.topic_name}] sending message is forbidden"
        )
    message = _look(context, header.offset)
    limit = group.retry_max_times
    if request.version >= MQVersion.V3_4_9 and header.max_reconsume_times is not None:
        limit = header.max_reconsume_times
    properties = _properties_of_copy(message)
    is_dead = header.delay_level < 0 or message.reconsume_times >= limit
    if is_dead:
        if not context.profile.dead_letter_keeps_delay:
            properties[DELAY] = "0"
        target, queue_id = _dead_letter_topic(context, header.group), 0
    else:
        properties[DELAY] = str(header.delay_level or _FIRST_LEVEL + message.reconsume_times)
        target, queue_id = retry, context.runtime.random.randrange(group.retry_queue_nums)
    _put(context, message, header.group, target.topic_name, queue_id, properties)
    if is_dead:
        owner = request.ext.get("Owner")
        context.stats.items.count_dead_letter(owner, header.origin_topic, header.group)
    return context.tables.flush.answer(RemotingCommand(ResponseCode.SUCCESS), before)


def _check(context: BrokerContext, header: ConsumerSendMsgBackRequestHeader) -> SubscriptionGroupConfig:
    """Return the group's settings, or raise if the group may not send messages back here."""
    group = context.tables.groups.find(header.group)
    if group is None:
        raise RequestError(
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            f"subscription group not exist, {header.group} {faq_suffix(context.profile.faq_url)}",
        )
    if not context.config.broker_permission & Perm.WRITE:
        host = format_host(context.store.store_host).rpartition(":")[0]
        raise RequestError(ResponseCode.NO_PERMISSION, f"the broker[{host}] sending message is forbidden")
    return group


def _dead_letter_topic(context: BrokerContext, group: str) -> TopicConfig:
    name = dlq_topic(group)
    known = context.tables.topics.find(name)
    if known is None:
        known = context.tables.topics.plan(name, 1, context.profile.dead_letter_perm)
        context.tables.topics.update(known)
    return known


def _look(context: BrokerContext, offset: int) -> MessageExt:
    """Return the message at a log position, if a consumer may have received it."""
    record = context.store.look_message(offset)
    try:
        message = None if record is None else decode_record(record)
    except RecordError:
        message = None
    if (
        message is None
        or message.topic == TRANS_HALF_TOPIC
        or message.sys_flag & TRANSACTION_MASK not in _VISIBLE
    ):
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {offset}")
    return message


def _properties_of_copy(message: MessageExt) -> dict[str, str]:
    properties = readable_properties(message.packed_properties)
    properties.setdefault(RETRY_TOPIC, message.topic)
    properties.setdefault(ORIGIN_MESSAGE_ID, message.offset_message_id)
    properties[WAIT] = "false"
    return properties


def _put(
    context: BrokerContext,
    message: MessageExt,
    group: str,
    topic: str,
    queue_id: int,
    properties: dict[str, str],
) -> None:
    """Store the copy that a group sent back, delayed if its properties ask for it.

    Raises:
        RequestError: SYSTEM_ERROR (1), the copy was not stored.
    """
    text = format_properties(properties)
    copy = StoredMessage(
        topic,
        queue_id,
        message.stored_body,
        text.encode(),
        java_hash(properties[TAGS]) if TAGS in properties else 0,
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        message.packed_born_host,
        min(message.reconsume_times + 1, 0x7FFF_FFFF),
    )
    try:
        context.sends.appender.put_sent_back(
            context.delays.hook.before_put(copy, text), properties[RETRY_TOPIC], group
        )
    except RequestError as error:
        raise RequestError(ResponseCode.SYSTEM_ERROR, error.remark) from None
