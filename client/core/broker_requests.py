"""Handlers of the requests that brokers send to a client, some of them on behalf of an administrator.

Brokers send CHECK_TRANSACTION_STATE (39), NOTIFY_CONSUMER_IDS_CHANGED (40), RESET_CONSUMER_CLIENT_OFFSET
(220) and RewindMQ's NOTIFY_QUEUE_RESET oneway. They wait for the answer to PUSH_REPLY_MESSAGE_TO_CLIENT
(326). ``consumer_requests`` handles the administrators' requests.

Source: RocketMQ 4.9.4 ``ClientRemotingProcessor``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, Protocol, runtime_checkable

from rewindmq.client.core.consumer_requests import ConsumerHost, ConsumerRequests
from rewindmq.client.core.rebalance_service import RebalanceService
from rewindmq.client.reply.pending_replies import PendingReplies
from rewindmq.client.reply.received_reply import received_reply
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.message import CheckTransactionStateRequestHeader
from rewindmq.protocol.header.reset import NotifyQueueResetRequestHeader, ResetOffsetRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import CORRELATION_ID, PGROUP
from rewindmq.protocol.message.record import RecordError, decode_record
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import Runtime

_log = logging.getLogger(__name__)


@runtime_checkable
class TransactionChecker(Protocol):
    """A producer that checks the transactions of its group."""

    def check_transaction_state(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        """Start the check; its result goes to the broker at ``address`` later."""


class RequestHost(ConsumerHost, Protocol):
    """A client instance, as these handlers see it."""

    runtime: Runtime
    client_id: str
    rebalance_service: RebalanceService
    replies: PendingReplies

    def find_producer(self, group: str) -> object | None:
        """Return this client's producer of the group, None if it has none."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run ``work`` in the background."""

    async def reset_offsets(self, topic: str, group: str, targets: Mapping[MessageQueue, int]) -> None:
        """Reset the offsets of this client's consumer of the group."""


class BrokerRequests:
    """Handlers of the brokers' requests to one instance; each runs when the callback pool has a free slot."""

    def __init__(self, instance: RequestHost) -> None:
        self._instance = instance

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {
            RequestCode.CHECK_TRANSACTION_STATE: self._on_check_transaction_state,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._on_consumer_ids_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._on_reset_offset,
            RequestCode.NOTIFY_QUEUE_RESET: self._on_queue_reset,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._on_reply,
            **ConsumerRequests(self._instance).handlers(),
        }

    def _on_check_transaction_state(self, connection: Connection, request: RemotingCommand) -> None:
        """Handle CHECK_TRANSACTION_STATE (39): the broker asks for the state of a transaction."""
        header = request.decode_header(CheckTransactionStateRequestHeader)
        try:
            message = decode_record(request.body if isinstance(request.body, bytes) else b"")
        except RecordError as error:
            address = connection.remote_address
            _log.warning("CHECK_TRANSACTION_STATE from %s has no readable message: %s", address, error)
            return
        producer = self._instance.find_producer(message.properties.get(PGROUP, ""))
        if not isinstance(producer, TransactionChecker):
            _log.warning("no transaction producer of group %s here", message.properties.get(PGROUP))
            return
        check = partial(producer.check_transaction_state, connection.remote_address, message, header)
        self._instance.callbacks.run(check)

    def _on_consumer_ids_changed(self, connection: Connection, request: RemotingCommand) -> None:
        """Handle NOTIFY_CONSUMER_IDS_CHANGED (40): the consumers of a group changed."""
        self._instance.callbacks.run(self._instance.rebalance_service.wake)

    def _on_reset_offset(self, connection: Connection, request: RemotingCommand) -> None:
        """Handle RESET_CONSUMER_CLIENT_OFFSET (220).

        A body in the form for C++ clients cannot be decoded. The error is raised here, before the consumer
        suspends a queue.

        The reset holds a slot of the callback pool from its beginning to its end, also while it waits for
        the instance's monitor.
        """
        instance = self._instance
        header = request.decode_header(ResetOffsetRequestHeader)
        targets = decode_body(request, ResetOffsetBody).offset_table if request.body else {}
        probe = instance.runtime.probe
        if probe is not None:
            probe(
                Point.RESET_NOTIFICATION_RECEIVED,
                {
                    "client_id": instance.client_id,
                    "group": header.group,
                    "topic": header.topic,
                    "broker": connection.remote_address,
                },
            )
        instance.spawn(self._run_reset(header.topic, header.group, targets))

    async def _run_reset(self, topic: str, group: str, targets: dict[MessageQueue, int]) -> None:
        async with self._instance.callbacks.slot():
            await self._instance.reset_offsets(topic, group, targets)

    def _on_reply(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Handle PUSH_REPLY_MESSAGE_TO_CLIENT (326): the reply to a request of this client.

        A reply that no request waits for is answered with SUCCESS (0), too, as in RocketMQ.
        """
        reply = received_reply(request, self._instance.runtime.clock.now_ms())
        correlation_id = reply.properties.get(CORRELATION_ID)
        if correlation_id is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "process reply message fail")
        if not self._instance.replies.complete(correlation_id, reply):
            _log.warning(
                "receive reply message, but not matched any request, CorrelationId: %s , reply from host: %s",
                correlation_id,
                reply.born_host,
            )
        return RemotingCommand(ResponseCode.SUCCESS)

    def _on_queue_reset(self, connection: Connection, request: RemotingCommand) -> None:
        """Handle NOTIFY_QUEUE_RESET: a fenced reset of a queue found no suspended pull to answer."""
        header = request.decode_header(NotifyQueueResetRequestHeader)
        self._instance.callbacks.run(partial(self._restart_queue, header))

    def _restart_queue(self, header: NotifyQueueResetRequestHeader) -> None:
        consumer = self._instance.find_consumer(header.consumer_group)
        if consumer is not None:
            queue = MessageQueue(header.topic, header.broker_name, header.queue_id)
            consumer.queue_reset(queue, header.offset, header.epoch)
