"""Handlers of the requests that administrators send to a consumer through a broker.

Source: RocketMQ 4.9.4 ``ClientRemotingProcessor``. RocketMQ runs them on the few threads that also run
resets. Here each request holds a slot of the callback pool until its answer is ready.
"""

from __future__ import annotations

from typing import Protocol

from rewindmq.client.core.callback_pool import CallbackPool
from rewindmq.client.core.inner import ConsumerInner
from rewindmq.client.core.stack_dump import stack_dump
from rewindmq.protocol.body.offset_table import GetConsumerStatusBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError, RewindMQError
from rewindmq.protocol.header.client import GetConsumerRunningInfoRequestHeader
from rewindmq.protocol.header.message import ConsumeMessageDirectlyResultRequestHeader
from rewindmq.protocol.header.reset import GetConsumerStatusRequestHeader
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.remoting.connection import Connection, Handler


class ConsumerHost(Protocol):
    """A client instance, as these handlers see it."""

    callbacks: CallbackPool

    def find_consumer(self, group: str) -> ConsumerInner | None:
        """Return this client's consumer of the group, None if it has none."""


class ConsumerRequests:
    """Handlers of the administrators' requests to the consumers of one instance."""

    def __init__(self, instance: ConsumerHost) -> None:
        self._instance = instance

    def handlers(self) -> dict[int, Handler]:
        """Return the handlers by request code."""
        return {
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._on_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._on_running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._on_consume_directly,
        }

    async def _on_status(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Answer GET_CONSUMER_STATUS_FROM_CLIENT (221) with the offsets in memory.

        The answer has no offsets if this client has no consumer of the group.
        """
        header = request.decode_header(GetConsumerStatusRequestHeader)
        async with self._instance.callbacks.slot():
            consumer = self._instance.find_consumer(header.group)
            offsets = {} if consumer is None else consumer.offsets_in_memory(header.topic)
            return RemotingCommand(ResponseCode.SUCCESS, body=GetConsumerStatusBody(offsets))

    async def _on_running_info(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Answer GET_CONSUMER_RUNNING_INFO (307)."""
        header = request.decode_header(GetConsumerRunningInfoRequestHeader)
        async with self._instance.callbacks.slot():
            consumer = self._find(header.consumer_group)
            try:
                info = await consumer.running_info()
            except RewindMQError as error:
                raise RequestError(ResponseCode.SYSTEM_ERROR, f"no running info: {error}") from None
            if header.jstack_enable:
                info.jstack = stack_dump()
            return RemotingCommand(ResponseCode.SUCCESS, body=info)

    async def _on_consume_directly(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """Consume one message for CONSUME_MESSAGE_DIRECTLY (309) and answer with the result."""
        header = request.decode_header(ConsumeMessageDirectlyResultRequestHeader)
        body = request.body
        broker_name = header.broker_name or ""
        messages = decode_records(bytes(body), broker_name) if isinstance(body, (bytes, memoryview)) else []
        if len(messages) != 1:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR, f"one message is expected, and {len(messages)} came"
            )
        async with self._instance.callbacks.slot():
            consumer = self._find(header.consumer_group)
            result = await consumer.consume_message_directly(messages[0])
            return RemotingCommand(ResponseCode.SUCCESS, body=result)

    def _find(self, group: str) -> ConsumerInner:
        consumer = self._instance.find_consumer(group)
        if consumer is None:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{group}> not exist in this consumer"
            )
        return consumer
