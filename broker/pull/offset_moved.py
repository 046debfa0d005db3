"""Stores the OFFSET_MOVED_EVENT message for a pull whose offset was out of range.

Specification: docs/spec/broker.md B.5, docs/spec/protocol.md 5.8.

Source: RocketMQ 4.2.0 and 4.9.4 ``PullMessageProcessor#generateOffsetMovedEvent``; 5.x only logs the event.
"""

from __future__ import annotations

import logging

from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.codec.body import encode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.integers import Int64
from rewindmq.protocol.message.properties import KEYS, TAGS, format_properties
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import OFFSET_MOVED_EVENT
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.runtime import Clock
from rewindmq.protocol.text import java_hash

_log = logging.getLogger(__name__)


class OffsetMovedEvent(RemotingBody):
    """The group and queue of a pull, the requested and the corrected offset."""

    consumer_group: str
    message_queue: MessageQueue
    offset_request: Int64
    offset_new: Int64


class OffsetMovedLog:
    """Stores an ``OffsetMovedEvent`` for each pull that was redirected."""

    def __init__(self, appender: MessageAppender, clock: Clock) -> None:
        self._appender = appender
        self._clock = clock

    def record(self, event: OffsetMovedEvent, client: str) -> None:
        """Store one event; if the store refuses it, log that and let the pull go on.

        Args:
            client: the pulling client, ``host:port``.
        """
        properties = format_properties({TAGS: event.consumer_group, KEYS: event.message_queue.topic})
        message = StoredMessage(
            OFFSET_MOVED_EVENT,
            0,
            encode_body(event, SerializeType.JSON),
            properties.encode(),
            java_hash(event.consumer_group),
            born_timestamp=self._clock.now_ms(),
            born_host=pack_host(client),
        )
        try:
            self._appender.put_other(message, is_counted=False)
        except RequestError as error:
            _log.warning("offset moved event of group %s not stored: %s", event.consumer_group, error)
