"""Sends ordinary messages with few steps (docs/benchmarks.md).

A plain send is the first try of one message to a queue in turn: an open connection that uses msgpack, a body
that needs no compression, no flag, and no UNIQ_KEY of an earlier send. Its frame has the bytes that
``SendRequests.command`` gives, but only the opaque, the time and the properties are encoded for each message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rewindmq.client.core.checks import require_sendable
from rewindmq.client.core.instance import ClientInstance
from rewindmq.client.core.route import PublishInfo
from rewindmq.client.produce.send_request import Outgoing, SendRequests, properties_text
from rewindmq.protocol.codec.msgpack_header import encode_header
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.frame import FrameStart
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.properties import (
    MSG_TYPE,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
    UNIQ_KEY,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection

# Values that a header has nowhere else: its texts are in ASCII.
_SAMPLE_OPAQUE: Final = 0x7FFEFDFC
_SAMPLE_MS: Final = 0xFFFEFDFCFB
_SAMPLE_PROPERTIES: Final = "\x01\x02"

# A text of properties is plain if it is so much shorter than the limit that its bytes need not be counted.
_MAX_TEXT: Final = MAX_PROPERTIES_BYTES // 8

# A value of another type may equal one with another text, as 1 equals True.
_TEXTS: Final = frozenset((str,))

_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE_EXT: Final = msgspec.msgpack.Decoder(SendMessageResponseHeader, strict=False).decode

# The future of the ``Response``, the queue, the message's id, its properties text, its body, and its topic's
# queues.
Begun = tuple[asyncio.Future[Any], MessageQueue, str, str, bytes, PublishInfo]


class _QueueRequests:
    """The parts of send requests that are the same for all plain messages to one queue.

    Attributes:
        connection: to the queue's master; None: to be looked up.
        changes: the route table's when ``connection`` was looked up.
        is_other: whether the peer does not use msgpack; it is asked again after the next change.
        start: the frame up to the opaque.
        stamped: from the opaque to the properties, with the time ``stamp``.
        end: behind the properties.
    """

    __slots__ = (
        "_between",
        "_middle",
        "changes",
        "connection",
        "end",
        "is_other",
        "queue",
        "stamp",
        "stamped",
        "start",
    )

    def __init__(self, requests: SendRequests, queue: MessageQueue) -> None:
        command = requests.command(Outgoing(b"", _SAMPLE_PROPERTIES, ""), queue, _SAMPLE_MS)
        command.opaque = _SAMPLE_OPAQUE
        start, _, rest = encode_header(command).partition(_ENCODE(_SAMPLE_OPAQUE))
        self.start = FrameStart(start)
        self._middle, _, rest = rest.partition(_ENCODE(_SAMPLE_MS))
        self._between, _, self.end = rest.partition(_ENCODE(_SAMPLE_PROPERTIES))
        self.queue = queue
        self.connection: Connection | None = None
        self.changes = 0
        self.is_other = False
        self.stamp = -1
        self.stamped = b""

    def set_time(self, now: int) -> None:
        """Put another time, ms since 1970, into ``stamped``."""
        self.stamp = now
        self.stamped = self._middle + _ENCODE(now) + self._between


class _TopicRequests:
    """The parts of send requests that are the same for many plain messages to one topic.

    Attributes:
        info: the topic's queues and whose turn it is.
        of_queues: by the position of the queue; None until its first turn.
        properties: the properties of the latest message before it got its id.
        names: their names in order.
        text: their text, up to the value of UNIQ_KEY.
    """

    __slots__ = ("info", "names", "of_queues", "properties", "text")

    def __init__(self, info: PublishInfo) -> None:
        self.info = info
        self.of_queues: list[_QueueRequests | None] = [None] * len(info.queues)
        self.properties: dict[str, str] | None = None
        self.names: list[str] = []
        self.text = ""

    def learn(self, properties: dict[str, str]) -> bool:
        """Prepare the text of these properties; return False if they are not plain."""
        is_other = UNIQ_KEY in properties or MSG_TYPE in properties
        if is_other or not _TEXTS.issuperset(map(type, properties.values())):
            return False
        try:
            text = properties_text(properties)
            text.encode()
        except (ClientError, UnicodeEncodeError):
            return False
        if len(text) > _MAX_TEXT:
            return False
        separator = PROPERTY_SEPARATOR if properties else ""
        self.text = f"{text}{separator}{UNIQ_KEY}{NAME_VALUE_SEPARATOR}"
        self.properties = properties.copy()
        self.names = [*properties]
        return True


class PlainSends:
    """Begins the plain sends of one producer.

    Args:
        publish: the topics to which the producer sends.
        max_body_bytes: longer bodies are not plain.
    """

    def __init__(
        self,
        instance: ClientInstance,
        requests: SendRequests,
        publish: Mapping[str, PublishInfo],
        max_body_bytes: int,
    ) -> None:
        self._requests = requests
        self._publish = publish
        self._max_body_bytes = max_body_bytes
        self._routes = instance.routes
        self._remoting = instance.remoting
        # Bound, because each send calls them: ``./scripts/bench --only send``.
        self._now_ms = instance.runtime.clock.now_ms
        self._id_at = instance.unique_ids.next_at
        self._topics: dict[str, _TopicRequests] = {}

    def begin(self, message: Message, timeout: float) -> Begun | None:
        """Send a message to the next queue, and give it its id; None: it is not plain, and nothing was sent.

        Args:
            timeout: seconds until the broker must have answered.
        """
        topic = self._topics.get(message.topic) or self._learn_topic(message.topic)
        if topic is None:
            return None
        info, of_queues = topic.info, topic.of_queues
        turn = info.turn + 1
        requests = of_queues[turn % len(of_queues)] or self._learn_queue(topic, turn)
        connection = requests.connection
        if connection is None or requests.changes != self._routes.changes:
            connection = self._connection(requests)
        body, properties = message.body, message.properties
        if (
            connection is None
            or type(body) is not bytes
            or not 0 < len(body) <= self._max_body_bytes
            or message.flag
            or (
                (properties != topic.properties or [*properties] != topic.names)
                and not topic.learn(properties)
            )
        ):
            return None
        now = self._now_ms()
        if requests.stamp != now:
            requests.set_time(now)
        msg_id = self._id_at(now)
        text = topic.text + msg_id
        future = connection.invoke_encoded(
            requests.start, requests.stamped + _ENCODE(text) + requests.end, body, timeout, _DECODE_EXT
        )
        if future is None:
            requests.connection = None
            return None
        info.turn = turn
        properties[UNIQ_KEY] = msg_id
        return future, requests.queue, msg_id, text, body, info

    def forget(self, topic: str) -> None:
        """Forget a topic whose queues may have changed."""
        self._topics.pop(topic, None)

    def _learn_topic(self, name: str) -> _TopicRequests | None:
        """Prepare the sends to a topic; return None if its queues are unknown."""
        info = self._publish.get(name)
        if info is None:
            return None
        require_sendable(name)
        topic = self._topics[name] = _TopicRequests(info)
        return topic

    def _learn_queue(self, topic: _TopicRequests, turn: int) -> _QueueRequests:
        """Prepare the requests to the queue whose turn it is."""
        position = turn % len(topic.of_queues)
        requests = topic.of_queues[position] = _QueueRequests(self._requests, topic.info.queues[position])
        return requests

    def _connection(self, requests: _QueueRequests) -> Connection | None:
        """Look up the connection to the master of a queue's broker; None unless it is open, in msgpack."""
        changes = self._routes.changes
        if requests.is_other and requests.changes == changes:
            return None
        address = self._routes.master_address(requests.queue.broker_name)
        connection = None if address is None else self._remoting.ready_connection(address)
        requests.is_other = (
            connection is not None and connection.peer_serialize_type is not SerializeType.MSGPACK
        )
        requests.changes = changes
        requests.connection = None if requests.is_other else connection
        return requests.connection
