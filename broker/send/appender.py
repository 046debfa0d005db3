"""Appends a message, wakes the pulls that wait for it, and responds when it is durable."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from types import MappingProxyType
from typing import Final, Protocol

import msgspec

from rewindmq.broker.background.sync_flush import SyncFlush
from rewindmq.broker.ha.sync_replica import SyncReplica
from rewindmq.broker.send.answer import SendAnswers
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.messages.batch import BatchDraft
from rewindmq.broker.store.model import PutResult, PutStatus, StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.flush import TableFlush
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message.properties import ended
from rewindmq.protocol.names import SCHEDULE_TOPIC
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.speedups import QueueRun

# RocketMQ 4.9.4 SendMessageProcessor#handlePutMessageResult: remarks that mean that nothing is stored.
_ILLEGAL: Final = (
    "the message is illegal: its body, topic or properties are longer than the broker accepts, or a property"
    " contains the character 0"
)
_NO_ROOM: Final = "create mapped file failed, server is busy or broken."
_LATE: Final = MappingProxyType(
    {
        ResponseCode.FLUSH_DISK_TIMEOUT: "stored, but the disk did not confirm it in time",
        ResponseCode.FLUSH_SLAVE_TIMEOUT: "stored, but no slave confirmed it in time",
        ResponseCode.SLAVE_NOT_AVAILABLE: "stored, but no slave is connected and near the log's end",
    }
)
_PUT_OK: Final = PutStatus.PUT_OK


class MessageArrivingListener(Protocol):
    """Receives each message that was just stored (RocketMQ's ``MessageArrivingListener``)."""

    def is_awaited(self, topic: str, queue_id: int) -> bool:
        """Return True if a pull waits for this queue."""

    def on_arrival(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tag_codes: tuple[int, ...],
        properties: Sequence[bytes],
    ) -> None:
        """Wake the pulls that wait for these messages.

        Args:
            max_offset: the queue's new maximum.
        """


class MessageAppender:
    """Appends messages and wakes the pulls that wait for them.

    Args:
        arrivals: the suspended pulls.
        sync_replica: None unless sends wait for a slave.
        ends_properties: see ``BrokerProfile``.
        tables: sends to a new topic wait until it is on disk.

    Attributes:
        answers: builds the responses.
        sync_flush: the sends that wait for the disk; None under ASYNC_FLUSH.
    """

    def __init__(
        self,
        store: MessageStore,
        stats: BrokerStats,
        arrivals: MessageArrivingListener,
        sync_flush: SyncFlush | None,
        sync_replica: SyncReplica | None,
        answers: SendAnswers,
        tables: TableFlush,
        *,
        ends_properties: bool,
    ) -> None:
        self._store = store
        self._stats = stats
        self._arrivals = arrivals
        # Bound, because each send calls them: ``./scripts/bench --only hot-path``.
        self._put_message = store.put_message
        self._on_arrival = arrivals.on_arrival
        self.sync_flush = sync_flush
        self._sync_replica = sync_replica
        self._answers_at_once = sync_flush is None and sync_replica is None
        self._ends_properties = ends_properties
        self._tables = tables
        self.answers = answers

    def put(self, message: StoredMessage) -> PutResult:
        """Store the message of a send in the queue to which it was sent. The store counts it.

        The caller has ended its properties as the release does.

        Raises:
            RequestError: MESSAGE_ILLEGAL (13), SERVICE_NOT_AVAILABLE (14) or SYSTEM_ERROR (1); nothing is
                stored.
        """
        result = self._put_message(message)
        if result.status is not _PUT_OK:
            raise self._refusal(result.status)
        self._on_arrival(
            message.topic,
            message.queue_id,
            result.queue_offset + 1,
            (message.tags_code,),
            (message.properties,),
        )
        return result

    def draft(self, message: StoredMessage) -> BatchDraft:
        """Begin a batch; see ``MessageStore.draft``."""
        return self._store.draft(message)

    def prepare(self, draft: BatchDraft) -> Generator[None]:
        """Prepare a batch; see ``MessageStore.prepare_draft``."""
        return self._store.prepare_draft(draft)

    def put_batch(self, draft: BatchDraft) -> PutResult:
        """Store all messages of a draft, or none.

        Raises:
            RequestError: MESSAGE_ILLEGAL (13), SERVICE_NOT_AVAILABLE (14) or SYSTEM_ERROR (1); nothing is
                stored.
        """
        result = self._store.put_draft(draft)
        if result.status is not _PUT_OK:
            raise self._refusal(result.status)
        message = draft.message
        if self._arrivals.is_awaited(message.topic, message.queue_id):
            self._on_arrival(
                message.topic,
                message.queue_id,
                result.queue_offset + len(draft),
                tuple(set(draft.tags_codes)),
                draft.properties,
            )
        return result

    @property
    def answers_at_once(self) -> bool:
        """True if no response waits for the disk or a slave."""
        return self._answers_at_once

    def put_run(self, records: bytes, queues: Sequence[QueueRun], timestamp: int) -> bool:
        """Store encoded messages on which no pull waits; see ``MessageStore.put_run``."""
        return self._store.put_run(records, queues, timestamp)

    def put_other(self, message: StoredMessage, *, is_counted: bool = True) -> PutResult:
        """Store a message that is not, or not only, a send to its queue; see ``put``.

        Args:
            is_counted: False for the broker's own messages, which are in no topic's statistics.
        """
        if self._ends_properties:
            message = msgspec.structs.replace(message, properties=ended(message.properties))
        result = self.put(message)
        self._stats.count_other_put(message.topic, result.size, is_counted=is_counted)
        return result

    def put_special(self, message: StoredMessage, queue_id: int) -> PutResult:
        """Store the message of a send that a ``PutMessageHook`` may have moved; see ``put``.

        Args:
            queue_id: the queue to which it was sent.
        """
        result = self.put_other(message)
        items = self._stats.items
        if message.topic == SCHEDULE_TOPIC:
            items.count_delayed(message.queue_id, result.size)
        if items.put_latencies is not None:
            items.put_latencies.count(message.topic, queue_id)
        return result

    def put_due(self, message: StoredMessage, queue_id: int) -> PutResult:
        """Store a delayed message, from a queue of the schedule topic, in its real topic; see ``put``."""
        result = self.put_other(message)
        self._stats.items.count_delivered(queue_id, result.size)
        return result

    def put_sent_back(self, message: StoredMessage, topic: str, group: str) -> PutResult:
        """Store a message of ``topic`` that a group sent back; see ``put``.

        As in RocketMQ, only a delayed message is in its topic's statistics, and none in the broker's.
        """
        result = self.put_other(message, is_counted=False)
        items = self._stats.items
        if message.topic == SCHEDULE_TOPIC:
            items.count_delayed_back(message.queue_id, result.size)
        items.count_send_back(topic, group)
        return result

    async def drain(self) -> None:
        """Wait until the sends that wait for the disk have their responses."""
        if self.sync_flush is not None:
            await self.sync_flush.drain()

    async def close(self) -> None:
        """Wait for the running flush; the sends that still wait get no response."""
        if self.sync_flush is not None:
            await self.sync_flush.close()

    def on_refused(self) -> None:
        """Note that a send was refused, so that its time does not count for a queue."""
        self._stats.forget_last_put()

    def _refusal(self, status: PutStatus) -> RequestError:
        self._stats.put_failed += 1
        if status is PutStatus.MESSAGE_ILLEGAL:
            return RequestError(ResponseCode.MESSAGE_ILLEGAL, _ILLEGAL)
        if status is PutStatus.CREATE_MAPPED_FILE_FAILED:
            return RequestError(
                ResponseCode.SYSTEM_ERROR, f"{_NO_ROOM} The disk fails: {self._store.write_failure}"
            )
        failure = self._store.flush_failure
        try:
            used = f"{self._store.disk_used_ratio():5.2f}"
        except OSError:
            used = "unknown"
        return RequestError(
            ResponseCode.SERVICE_NOT_AVAILABLE,
            "service not available now. It may be caused by one of the following reasons: the broker's disk"
            f" is full [CL: {used} CQ: {used} INDEX: {used}], messages are put to the slave, message store"
            " has been shut down, etc." + (f" The disk fails: {failure}" if failure else ""),
        )

    def answer_when_durable(
        self,
        connection: Connection,
        request: RemotingCommand,
        response: RemotingCommand,
        result: PutResult,
        *,
        waits: bool,
    ) -> RemotingCommand | None:
        """Return the response at once, or None if it follows when the message is durable.

        Args:
            waits: the message's WAIT property; if False, the method only starts a flush.
        """
        if self._answers_at_once:
            return response
        sync_flush, sync_replica = self.sync_flush, self._sync_replica
        if not waits:
            if sync_flush is not None:
                sync_flush.begin()
            return response
        request.drop_content()
        end = result.physical_offset + result.size
        steps = (sync_flush is not None) + (sync_replica is not None)
        answer = _Answer(connection, request, response, steps, self._store)
        if sync_replica is not None:
            sync_replica.wait(end, answer.on_replicated)
        if sync_flush is not None:
            sync_flush.wait(end, answer.on_flushed)
        return None

    async def answer_when_saved(
        self,
        connection: Connection,
        request: RemotingCommand,
        response: RemotingCommand,
        result: PutResult,
        *,
        waits: bool,
    ) -> RemotingCommand | None:
        """Like ``answer_when_durable``, once the message's topic is on disk, too."""
        try:
            await self._tables.saved()
        except RequestError as error:
            return self.answers.refused(error)
        return self.answer_when_durable(connection, request, response, result, waits=waits)


class _Answer:
    """The response to a stored message, sent when flush and replication are done or timed out."""

    __slots__ = ("_connection", "_request", "_response", "_steps", "_store")

    def __init__(
        self,
        connection: Connection,
        request: RemotingCommand,
        response: RemotingCommand,
        steps: int,
        store: MessageStore,
    ) -> None:
        self._connection = connection
        self._request = request
        self._response = response
        self._steps = steps
        self._store = store

    def on_flushed(self, is_durable: bool) -> None:
        # The slave's result takes precedence, as in RocketMQ.
        if not is_durable and self._response.code == ResponseCode.SUCCESS:
            self._set(ResponseCode.FLUSH_DISK_TIMEOUT)
            if self._store.flush_failure:
                self._response.remark = f"{self._response.remark}: {self._store.flush_failure}"
        self._done()

    def on_replicated(self, failure: ResponseCode | None) -> None:
        if failure is not None:
            self._set(failure)
        self._done()

    def _set(self, code: ResponseCode) -> None:
        self._response.code = code
        self._response.remark = _LATE[code]

    def _done(self) -> None:
        self._steps -= 1
        if not self._steps:
            self._connection.reply(self._request, self._response)
