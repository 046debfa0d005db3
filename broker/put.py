"""The last steps every stored message shares: the put, who is woken by it, and when it counts as done."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from rewindmq.broker.long_polling import LongPolling
from rewindmq.broker.stats import BrokerStats
from rewindmq.broker.store.model import BatchEntry, PutResult, PutStatus, StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.sync_flush import SyncFlush
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection

# RocketMQ 4.9.4 SendMessageProcessor#handlePutMessageResult; whatever is refused stored nothing.
_REFUSALS: Final = MappingProxyType(
    {
        PutStatus.MESSAGE_ILLEGAL: (
            ResponseCode.MESSAGE_ILLEGAL,
            "the message is illegal: its body, topic or properties are longer than the broker accepts",
        ),
        PutStatus.SERVICE_NOT_AVAILABLE: (
            ResponseCode.SERVICE_NOT_AVAILABLE,
            "service not available now: the store is closed or an earlier write to it failed",
        ),
        PutStatus.CREATE_MAPPED_FILE_FAILED: (
            ResponseCode.SYSTEM_ERROR,
            "create mapped file failed, server is busy or broken.",
        ),
    }
)
_PUT_OK: Final = PutStatus.PUT_OK


class MessagePutter:
    """Puts messages and wakes the pulls that wait for them.

    Args:
        sync_flush: None under ASYNC_FLUSH.
    """

    def __init__(
        self,
        store: MessageStore,
        stats: BrokerStats,
        long_polling: LongPolling,
        sync_flush: SyncFlush | None,
    ) -> None:
        self._put_message = store.put_message
        self._put_batch = store.put_batch
        self._stats = stats
        self._on_arrival = long_polling.on_arrival
        self._sync_flush = sync_flush

    def put(self, message: StoredMessage) -> PutResult:
        """Store one message.

        Raises:
            RequestError: 13, 14 or 1; nothing was stored.
        """
        result = self._put_message(message)
        if result.status is not _PUT_OK:
            raise RequestError(*_REFUSALS[result.status])
        self._stats.put_total += 1
        self._on_arrival(
            message.topic,
            message.queue_id,
            result.queue_offset + 1,
            (message.tags_code,),
            (message.properties,),
        )
        return result

    def put_batch(self, message: StoredMessage, entries: Sequence[BatchEntry]) -> PutResult:
        """Store all entries, or none.

        Raises:
            RequestError: 13, 14 or 1; nothing was stored.
        """
        result = self._put_batch(message, entries)
        if result.status is not _PUT_OK:
            raise RequestError(*_REFUSALS[result.status])
        count = len(entries)
        self._stats.put_total += count
        tag_codes = tuple({entry.tags_code for entry in entries})
        self._on_arrival(
            message.topic,
            message.queue_id,
            result.queue_offset + count,
            tag_codes,
            [entry.properties for entry in entries],
        )
        return result

    def answer_when_durable(
        self,
        connection: Connection,
        request: RemotingCommand,
        response: RemotingCommand,
        result: PutResult,
        *,
        waits: bool,
    ) -> RemotingCommand | None:
        """The answer at once, or None when it follows once the message is on disk.

        Args:
            waits: the message's WAIT property; False only sees to it that a flush begins.
        """
        sync_flush = self._sync_flush
        if sync_flush is None:
            return response
        if not waits:
            sync_flush.begin()
            return response
        sync_flush.wait(result.physical_offset + result.size, partial(_answer, connection, request, response))
        return None


def _answer(
    connection: Connection, request: RemotingCommand, response: RemotingCommand, is_durable: bool
) -> None:
    if not is_durable:
        response.code = ResponseCode.FLUSH_DISK_TIMEOUT
        response.remark = "stored, but the disk did not confirm it in time"
    connection.reply(request, response)
