"""Turns messages into send requests (docs/spec/protocol.md 3.3, 6.4 to 6.7)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

from rewindmq.client.core.checks import require_sendable
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError, RequestError
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.properties import (
    DELAY,
    MSG_TYPE,
    NAME_VALUE_SEPARATOR,
    REPLY_MESSAGE_FLAG,
    TIMERS,
    UNIQ_KEY,
    WAIT,
    format_properties,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import DEFAULT_TOPIC, RETRY_GROUP_TOPIC_PREFIX

_ZLIB_LEVEL: Final = 5
_EMPTY_BODY: Final = "the message body length is zero"


class Outgoing:
    """One message or batch, ready to be sent: the parts of its request that are the same for every queue."""

    __slots__ = ("body", "code", "flag", "is_batch", "msg_id", "properties", "sys_flag")

    def __init__(
        self,
        body: bytes,
        properties: str,
        msg_id: str,
        *,
        flag: int = 0,
        sys_flag: int = 0,
        is_batch: bool = False,
        code: RequestCode = RequestCode.SEND_MESSAGE_V2,
    ) -> None:
        self.body = body
        self.properties = properties
        self.msg_id = msg_id
        self.flag = flag
        self.sys_flag = sys_flag
        self.is_batch = is_batch
        self.code = code


class SendRequests:
    """Creates the send requests of one producer.

    Args:
        max_message_size: largest body in bytes, before compression.
        compress_over: size in bytes from which bodies are compressed.
        default_topic_queue_nums: queues per broker of a topic that is created by sending to it.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        *,
        max_message_size: int,
        compress_over: int,
        default_topic_queue_nums: int,
    ) -> None:
        self._group = group
        self._max_message_size = max_message_size
        self._compress_over = compress_over
        self._default_topic_queue_nums = default_topic_queue_nums
        # Bound, because each send calls them: ``./scripts/bench --only send``.
        self._next_id = instance.unique_ids.next
        self._now_ms = instance.runtime.clock.now_ms
        self._version = instance.profile.announced_version
        self._compressed_flag = instance.profile.compressed_flag
        # Topics that passed the check. Only topics that the application sends to are added, so the set stays
        # small.
        self._checked_topics: set[str] = set()

    def prepare(self, message: Message) -> Outgoing:
        """Check one message, give it a unique id unless it has one, and compress a large body.

        Raises:
            ClientError: the topic, body or properties are invalid.
        """
        self._check(message)
        properties = message.properties
        # A message sent a second time keeps its id, as in Java.
        msg_id = properties.get(UNIQ_KEY)
        if msg_id is None:
            msg_id = properties[UNIQ_KEY] = self._next_id()
        body = message.body
        sys_flag = 0
        if len(body) >= self._compress_over:
            body = zlib.compress(body, _ZLIB_LEVEL)
            sys_flag = self._compressed_flag
        outgoing = Outgoing(body, properties_text(properties), msg_id, flag=message.flag, sys_flag=sys_flag)
        if MSG_TYPE in properties and properties[MSG_TYPE] == REPLY_MESSAGE_FLAG:
            outgoing.code = RequestCode.SEND_REPLY_MESSAGE_V2
        return outgoing

    def prepare_batch(self, messages: Sequence[Message]) -> Outgoing:
        """Check a batch and give each message a unique id unless it has one; batches are not compressed.

        Raises:
            ClientError: as ``prepare``, or the messages cannot be in one batch.
        """
        if not messages:
            raise ClientError("the batch is empty")
        first = messages[0]
        topic, wait = first.topic, first.properties.get(WAIT)
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            raise ClientError("Retry Group is not supported for batching")
        self._check(first)
        ids: list[str] = []
        for message in messages:
            properties = message.properties
            if message.topic != topic:
                raise ClientError("The topic of the messages in one batch should be the same")
            if DELAY in properties:
                raise ClientError("TimeDelayLevel in not supported for batching")
            if any(name in properties for name in TIMERS):
                raise ClientError("a batch cannot have a delivery time: send its messages one by one")
            if properties.get(WAIT) != wait:
                raise ClientError("The waitStoreMsgOK of the messages in one batch should the same")
            if not message.body:
                raise ClientError(_EMPTY_BODY)
            msg_id = properties.get(UNIQ_KEY)
            if msg_id is None:
                msg_id = properties[UNIQ_KEY] = self._next_id()
            ids.append(msg_id)
        try:
            body = encode_batch(messages)
        except RequestError as error:
            raise ClientError(error.remark) from None
        if len(body) > self._max_message_size:
            raise ClientError(f"the batch is over max value, MAX: {self._max_message_size}")
        text = "" if wait is None else f"{WAIT}{NAME_VALUE_SEPARATOR}{wait}"
        return Outgoing(body, text, ",".join(ids), is_batch=True, code=RequestCode.SEND_BATCH_MESSAGE)

    def command(self, outgoing: Outgoing, queue: MessageQueue, now: int | None = None) -> RemotingCommand:
        """Return the request that sends a message or batch to ``queue``.

        Args:
            now: the time in ms that the request has; None: the clock's.
        """
        header = SendMessageRequestHeaderV2(
            self._group,
            queue.topic,
            DEFAULT_TOPIC,
            self._default_topic_queue_nums,
            queue.queue_id,
            outgoing.sys_flag,
            self._now_ms() if now is None else now,
            outgoing.flag,
            outgoing.properties,
            0,
            False,
            None,
            outgoing.is_batch,
        )
        return RemotingCommand(outgoing.code, header, outgoing.body, version=self._version)

    def _check(self, message: Message) -> None:
        topic = message.topic
        if topic not in self._checked_topics:
            require_sendable(topic)
            self._checked_topics.add(topic)
        size = len(message.body)
        if not size:
            raise ClientError(_EMPTY_BODY)
        if size > self._max_message_size:
            raise ClientError(f"the message body size over max value, MAX: {self._max_message_size}")


def properties_text(properties: dict[str, str]) -> str:
    """Return the properties of a message as text.

    Raises:
        ClientError: a name or value contains a separator, or the text is over 32,767 bytes.
    """
    try:
        text = format_properties(properties)
    except RequestError as error:
        raise ClientError(error.remark) from None
    if len(text) > MAX_PROPERTIES_BYTES // 4 and len(text.encode()) > MAX_PROPERTIES_BYTES:
        raise ClientError(f"the properties are over {MAX_PROPERTIES_BYTES} bytes")
    return text
