"""RECALL_MESSAGE (370): take back a message that waits for its time.

Kept from 5.5.1 ``RecallMessageProcessor``: every check, code and remark (docs/spec/timers.md 6), and the
message that is stored: it deletes the other one when that is due. A second recall succeeds, too.
Changed: if the deletion is not durable or not replicated in time, the code says so, as for a send; RocketMQ
returns 0.
Refused with 3: the request under v42 and v49, as by brokers before 5.3.2.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.recall import RecallMessageRequestHeader, RecallMessageResponseHeader
from rewindmq.protocol.message.properties import (
    BORN_TIMESTAMP,
    PGROUP,
    TAGS,
    TIMER_DEL_UNIQKEY,
    TIMER_DELIVER_MS,
    UNIQ_KEY,
    format_properties,
)
from rewindmq.protocol.message.recall_handle import RecallHandle, decode_recall_handle
from rewindmq.protocol.message.sysflag import Perm
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.text import java_hash, parse_long

CODE: Final = RequestCode.RECALL_MESSAGE

_TAG: Final = "_RECALL_TAG_"
_BODY: Final = b"0"
_NOT_SERVING: Final = "recall failed, broker service not available"


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(RecallMessageRequestHeader)
    region = {"MSG_REGION": context.config.region_id}
    try:
        _check_serving(context, header)
        target = _target(context, header)
        message = _deletion(context, connection, header, target)
        timers = context.timers
        assert timers is not None
        try:
            message = timers.hook.before_put(message, message.properties.decode())
            result = context.sends.appender.put_other(message)
        except RequestError as error:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "recall failed, execute error") from error
    except RequestError as error:
        return RemotingCommand(error.code, remark=error.remark, ext_fields=region)
    response = RemotingCommand(
        ResponseCode.SUCCESS, RecallMessageResponseHeader(target.message_id), ext_fields=region
    )
    return context.sends.appender.answer_when_durable(connection, request, response, result, waits=True)


def _check_serving(context: BrokerContext, header: RecallMessageRequestHeader) -> None:
    config = context.config
    if not config.recall_message_enable:
        raise RequestError(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    if config.is_slave:
        raise RequestError(ResponseCode.SLAVE_NOT_AVAILABLE, _NOT_SERVING)
    if not config.broker_permission & Perm.WRITE and not config.allow_recall_when_broker_not_writeable:
        raise RequestError(ResponseCode.SERVICE_NOT_AVAILABLE, _NOT_SERVING)
    if context.tables.topics.find(header.topic) is None:
        raise RequestError(
            ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{header.topic}] not exist"
        )


def _target(context: BrokerContext, header: RecallMessageRequestHeader) -> RecallHandle:
    """Return the message to recall, which waits here."""
    target = decode_recall_handle(header.recall_handle)
    if target is None:
        raise _refused("recall handle is invalid")
    if target.topic != header.topic:
        raise _refused("recall failed, topic not match")
    if target.broker_name != context.config.broker_name:
        raise _refused(_NOT_SERVING)
    due_ms = parse_long(target.timestamp)
    left_ms = (-1 if due_ms is None else due_ms) - context.runtime.clock.now_ms()
    if not 0 < left_ms < context.config.store.timer_max_delay_sec * 1_000:
        raise _refused("recall failed, timestamp invalid")
    return target


def _refused(remark: str) -> RequestError:
    return RequestError(ResponseCode.ILLEGAL_OPERATION, remark)


def _deletion(
    context: BrokerContext, connection: Connection, header: RecallMessageRequestHeader, target: RecallHandle
) -> StoredMessage:
    """Return the message that deletes the other one."""
    now_ms = context.runtime.clock.now_ms()
    by_topic = context.config.store.append_topic_for_timer_delete_key
    properties = {
        TIMER_DEL_UNIQKEY: f"{target.topic}+{target.message_id}" if by_topic else target.message_id,
        UNIQ_KEY: target.message_id,
        TIMER_DELIVER_MS: target.timestamp,
        BORN_TIMESTAMP: str(now_ms),
        TAGS: _TAG,
    }
    if header.producer_group:
        properties[PGROUP] = header.producer_group
    return StoredMessage(
        target.topic,
        0,
        _BODY,
        format_properties(properties).encode(),
        java_hash(_TAG),
        born_timestamp=now_ms,
        born_host=pack_host(connection.remote_address),
    )
