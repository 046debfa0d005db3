"""Stores one message, for SEND_MESSAGE (10; docs/spec/broker.md B.2, docs/spec/protocol.md 3.3, 3.4, 6.5).

RocketMQ 4.9.4 ``SendMessageProcessor#asyncSendMessage``. This is the hottest path of the broker.
"""

from __future__ import annotations

from typing import Any, Final

from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.put_message_hook import PutMessageHooks
from rewindmq.broker.send.validator import SendValidator
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageRequestHeader
from rewindmq.protocol.message.properties import (
    DELAY,
    KEYS,
    PROPERTY_SEPARATOR,
    UNIQ_KEY,
    WAIT,
    find_property,
    with_property,
)
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import TIMER_TOPIC
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.connection import Connection, Reply
from rewindmq.protocol.remoting.unique_id import UniqueIdGenerator
from rewindmq.protocol.text import java_hash

_WAIT_MARK: Final = "WAIT\x01"
_WAIT_TRUE_LAST: Final = "\x02WAIT\x01true"
_WAIT_TRUE_INSIDE: Final = "\x02WAIT\x01true\x02"
_TAGS_FIRST: Final = "TAGS\x01"
_TAGS_INSIDE: Final = "\x02TAGS\x01"
_DELAY_MARK: Final = "DELAY\x01"
_TRAN_MARK: Final = "TRAN_MSG\x01"
# TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS.
_TIMER_MARK: Final = "TIMER_DE"
# A plain int: the enum's own operators cost more than the rest of this path.
INNER_BATCH_FLAGS: Final = int(MessageSysFlag.NEED_UNWRAP | MessageSysFlag.INNER_BATCH)
SPECIAL_FLAGS: Final = TRANSACTION_MASK | INNER_BATCH_FLAGS


class MessageSender:
    """Serves sends of single messages.

    Args:
        added: the text of the properties that every message gets, see ``added_text``.
        stores_wait: messages keep their WAIT property; if False, only those of internal topics do.
        unique_ids: generates the UNIQ_KEY of a message that has none (5.3.3
            ``SendMessageProcessor#sendMessage``).
    """

    def __init__(
        self,
        added: str,
        validator: SendValidator,
        appender: MessageAppender,
        hooks: PutMessageHooks,
        *,
        stores_wait: bool,
        unique_ids: UniqueIdGenerator | None = None,
    ) -> None:
        self._validator = validator
        self._appender = appender
        self._answers = appender.answers
        self._hooks = hooks
        # Bound, because each send calls them: ``./scripts/bench --only hot-path``.
        self._admit = validator.admit
        self._put = appender.put
        self._answer_when_durable = appender.answer_when_durable
        self._added = added
        self._stores_wait = stores_wait
        self._unique_ids = unique_ids

    def send(
        self, connection: Connection, request: RemotingCommand, header: SendMessageRequestHeader
    ) -> Reply:
        """Store the request's body; return None if the response waits for the disk."""
        remote_address = connection.remote_address
        try:
            target, queue_id = self._admit(header, request.version, remote_address)
            # A received body is bytes.
            body: Any = request.body or b""
            text = header.properties or ""
            is_special = (
                header.sys_flag & SPECIAL_FLAGS
                or _DELAY_MARK in text
                or _TRAN_MARK in text
                or _TIMER_MARK in text
            )
            unique_key = None
            if self._unique_ids is not None:
                unique_key = find_property(text, UNIQ_KEY)
                if unique_key is None:
                    unique_key = self._unique_ids.next()
                    text = with_property(text, UNIQ_KEY, unique_key)
            if target.needs_keys:
                require_keys(text)
            if is_special or self._stores_wait:
                # Internal topics keep WAIT in every release.
                waits = find_property(text, WAIT) != "false"
                if target.drops_delay:
                    text = with_property(text, DELAY, "-1")
            else:
                text, waits = strip_wait(text)
            tags_code = tags_code_of(text)
            if text and text[-1] != PROPERTY_SEPARATOR:
                text += PROPERTY_SEPARATOR
            text += self._added
            message = StoredMessage(
                target.topic,
                queue_id,
                body,
                text.encode(),
                tags_code,
                header.flag,
                header.sys_flag | target.extra_sys_flag,
                header.born_timestamp,
                pack_host(remote_address),
                header.reconsume_times or 0,
            )
            recall_handle = None
            if is_special:
                message = self._hooks.before_put(message, text)
                if message.topic == TIMER_TOPIC != target.topic:
                    recall_handle = self._answers.recall_handle(target.topic, message.properties, unique_key)
            result = self._appender.put_special(message, queue_id) if is_special else self._put(message)
            if target.planned is not None:
                self._validator.create(target.planned)
        except RequestError as error:
            self._appender.on_refused()
            return self._answers.refused(error)
        response = self._answers.stored(queue_id, result, unique_key, recall_handle=recall_handle)
        if target.is_unsaved:
            return self._appender.answer_when_saved(connection, request, response, result, waits=waits)
        return self._answer_when_durable(connection, request, response, result, waits=waits)


def strip_wait(text: str) -> tuple[str, bool]:
    """Return the properties text without WAIT, which records do not keep, and WAIT's value."""
    given = text
    if text.endswith(_WAIT_TRUE_LAST):
        text = text[: -len(_WAIT_TRUE_LAST)]
    else:
        text = text.replace(_WAIT_TRUE_INSIDE, PROPERTY_SEPARATOR)
    if _WAIT_MARK not in text:
        return text, True
    waits = find_property(given, WAIT) != "false"
    kept = [piece for piece in text.split(PROPERTY_SEPARATOR) if not piece.startswith(_WAIT_MARK)]
    return PROPERTY_SEPARATOR.join(kept), waits


def tags_code_of(text: str) -> int:
    """Return the hash of the last TAGS in a properties text, 0 without one."""
    _, found, after = text.rpartition(_TAGS_INSIDE)
    if not found:
        if not text.startswith(_TAGS_FIRST):
            return 0
        after = text[len(_TAGS_FIRST) :]
    tags, _, _ = after.partition(PROPERTY_SEPARATOR)
    return java_hash(tags) if tags else 0


def refuse_inner_batch(message: StoredMessage, text: str) -> StoredMessage:
    """Hook that refuses 5.x's inner batches, whose records this broker would store as single messages.

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), the message is an inner batch.
    """
    if message.sys_flag & INNER_BATCH_FLAGS:
        raise RequestError(
            ResponseCode.MESSAGE_ILLEGAL,
            "this broker does not accept inner batches (5.x); nothing was stored",
        )
    return message


def require_keys(text: str) -> None:
    """Refuse a message without KEYS, which a compaction topic needs (5.3.3).

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), the properties text has no KEYS.
    """
    if not (find_property(text, KEYS) or "").strip():
        raise RequestError(ResponseCode.MESSAGE_ILLEGAL, "Required message key is missing")
