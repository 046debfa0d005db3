"""Pushes a reply to the client that sent the request, for SEND_REPLY_MESSAGE (324, 325).

Source: RocketMQ 4.9.7 ``ReplyMessageProcessor``, ``Broker2Client#callClient``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from rewindmq.broker.clients.channel import CALL_CLIENT_SECONDS
from rewindmq.broker.clients.producer_manager import ProducerManager
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.limits import MAX_WAITING_REPLIES_PER_CONNECTION
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.put_message_hook import PutMessageHook
from rewindmq.broker.send.sender import tags_code_of
from rewindmq.broker.send.validator import SendTarget, SendValidator
from rewindmq.broker.shares import Shares
from rewindmq.broker.store.model import PutResult, StoredMessage
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RemotingError, RequestError
from rewindmq.protocol.header.send import ReplyMessageRequestHeader, SendMessageRequestHeader
from rewindmq.protocol.message.properties import (
    PUSH_REPLY_TIME,
    REPLY_TO_CLIENT,
    find_property,
    with_property,
)
from rewindmq.protocol.message.sysflag import COMPRESSION_TYPE_MASK, MessageSysFlag
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.remoting.runtime import Clock

# The sysFlag bits that a stored reply keeps: without them, consumers could not read a compressed body.
_COMPRESSION: Final = int(MessageSysFlag.COMPRESSED) | COMPRESSION_TYPE_MASK

_Push = asyncio.Future[RemotingCommand]

_log = logging.getLogger(__name__)


class ReplySender:
    """Serves replies: pushes each to its requester, and stores it if ``storeReplyMessageEnable`` is set.

    Args:
        before_put: the hooks for timers and delay levels.
        address: the broker's registered ``host:port``.
        added: properties that the broker adds to every reply.

    Attributes:
        waiting: the replies that requesters have not answered yet, by the connection that sent the reply.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        producers: ProducerManager,
        validator: SendValidator,
        before_put: PutMessageHook,
        appender: MessageAppender,
        address: str,
        added: Mapping[str, str],
    ) -> None:
        self._config = config
        self._clock = clock
        self._producers = producers
        self._validator = validator
        self._before_put = before_put
        self._appender = appender
        self._answers = appender.answers
        self._address = address
        self._added = added
        self.waiting = Shares(
            "waiting replies", MAX_WAITING_REPLIES_PER_CONNECTION, config.reply_thread_pool_queue_capacity
        )

    def send(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> Reply:
        """Push the request's body to the requester; the response follows when the requester has answered.

        The reply is pushed and stored at once, so the wait holds no message.
        """
        try:
            self.waiting.check(connection, code=ResponseCode.SYSTEM_BUSY)
            target, queue_id = self._validator.admit(header, request.version, connection.remote_address)
        except RequestError as error:
            return self._answers.refused(error)
        # A received body is bytes.
        body: Any = request.body or b""
        text = header.properties or ""
        for name, value in self._added.items():
            text = with_property(text, name, value)
        push = self._push(connection, header, text, body)
        result = self._store(connection, header, target, queue_id, text, body)
        request.drop_content()
        return self._answer(connection, request, push, target, queue_id, result)

    def _push(
        self, connection: Connection, header: SendMessageRequestHeader, text: str, body: bytes
    ) -> tuple[str, _Push] | str:
        """Return the requester's client id and answer, or why nothing was pushed.

        Args:
            text: the properties.
        """
        client_id = find_property(text, REPLY_TO_CLIENT)
        if client_id is None:
            return f"reply message properties[{REPLY_TO_CLIENT}] is null"
        requester = self._producers.find_client(client_id)
        if requester is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        now_ms = self._clock.now_ms()
        pushed = ReplyMessageRequestHeader(
            header.producer_group,
            header.topic,
            header.default_topic,
            header.default_topic_queue_nums,
            header.queue_id,
            header.sys_flag,
            header.born_timestamp,
            header.flag,
            connection.remote_address,
            self._address,
            now_ms,
            with_property(text, PUSH_REPLY_TIME, str(now_ms)),
            header.reconsume_times,
            header.unit_mode,
        )
        command = RemotingCommand(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, pushed, body)
        push = requester.invoke(command, CALL_CLIENT_SECONDS)
        self.waiting.add(connection)
        push.add_done_callback(partial(self._push_ended, connection))
        return client_id, push

    def _push_ended(self, connection: Connection, push: _Push) -> None:
        """Count an answered push; the task that waits for it may have been cancelled."""
        self.waiting.remove(connection)
        if not push.cancelled():
            push.exception()

    def _store(
        self,
        connection: Connection,
        header: SendMessageRequestHeader,
        target: SendTarget,
        queue_id: int,
        text: str,
        body: bytes,
    ) -> PutResult | None:
        """Store the reply; return None if replies are not stored, or if this one cannot be stored."""
        if not self._config.store_reply_message_enable:
            return None
        message = StoredMessage(
            target.topic,
            queue_id,
            body,
            text.encode(),
            tags_code_of(text),
            header.flag,
            header.sys_flag & _COMPRESSION | target.extra_sys_flag,
            header.born_timestamp,
            pack_host(connection.remote_address),
            header.reconsume_times or 0,
        )
        try:
            result = self._appender.put_other(self._before_put(message, text))
            if target.planned is not None:
                self._validator.create(target.planned)
        except RequestError as error:
            _log.warning("a reply in topic %s is not stored: %s", target.topic, error.remark)
            return None
        return result

    async def _answer(
        self,
        connection: Connection,
        request: RemotingCommand,
        push: tuple[str, _Push] | str,
        target: SendTarget,
        queue_id: int,
        result: PutResult | None,
    ) -> RemotingCommand | None:
        remark = push if isinstance(push, str) else await _failure_of(*push)
        if remark is not None:
            _log.warning("%s", remark)
        if result is None:
            if remark is not None:
                return self._answers.refused(RequestError(ResponseCode.SYSTEM_ERROR, remark))
            return self._answers.pushed(queue_id)
        response = self._answers.stored(queue_id, result)
        if remark is not None:
            response.code, response.remark = ResponseCode.SYSTEM_ERROR, remark
        appender = self._appender
        if target.is_unsaved:
            return await appender.answer_when_saved(connection, request, response, result, waits=False)
        return appender.answer_when_durable(connection, request, response, result, waits=False)


async def _failure_of(client_id: str, push: _Push) -> str | None:
    """Return the remark of a push that failed, in RocketMQ's words; None if the requester has the reply."""
    try:
        # If the sender of the reply leaves, its place stays taken until the requester has answered.
        answer = await asyncio.shield(push)
    except RemotingError as error:
        _log.warning("push reply message to <%s> fail. %s", client_id, error)
    else:
        if answer.code == ResponseCode.SUCCESS:
            return None
        _log.warning("push reply message to <%s> return fail, response remark: %s", client_id, answer.remark)
    return f"push reply message to {client_id}fail."
