"""The message that tells of a pull whose offset was out of range.

Specification: docs/spec/broker.md B.5, docs/spec/protocol.md 5.8.

RocketMQ 4.2.0 and 4.9.4 ``PullMessageProcessor#generateOffsetMovedEvent``; 5.x only logs it.
"""

from __future__ import annotations

import logging

from rewindmq.broker.host import pack_host
from rewindmq.broker.put import MessagePutter
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body_codec import encode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.integers import Int64
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import OFFSET_MOVED_EVENT
from rewindmq.protocol.properties import KEYS, TAGS, format_properties
from rewindmq.protocol.remoting.runtime import Clock
from rewindmq.protocol.text import java_hash

_log = logging.getLogger(__name__)


class OffsetMovedEvent(RemotingBody):
    """Who asked for which offset, and where it was sent instead."""

    consumer_group: str
    message_queue: MessageQueue
    offset_request: Int64
    offset_new: Int64


class OffsetMovedLog:
    """Stores an ``OffsetMovedEvent`` for each pull that was moved."""

    def __init__(self, putter: MessagePutter, clock: Clock) -> None:
        self._putter = putter
        self._clock = clock

    def record(self, event: OffsetMovedEvent, client: str) -> None:
        """Store one event; a store that refuses it costs a line in the log, not the pull.

        Args:
            client: who pulled, ``host:port``.
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
            self._putter.put(message)
        except RequestError as error:
            _log.warning("offset moved event of group %s not stored: %s", event.consumer_group, error)
