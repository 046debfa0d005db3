"""RetrySender: sends a message to the retry topic of the consumer's own group, as a producer would.

Specification: docs/spec/client.md C.11.

After ``maxReconsumeTimes`` retries the broker stores the message in the dead-letter topic. Source: RocketMQ
4.9.4 ``ConsumeMessageOrderlyService#sendMessageBack`` and ``DefaultMQProducerImpl#sendKernelImpl``.
"""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.instance import INNER_PRODUCER_GROUP, ClientInstance
from rewindmq.client.core.route import publish_queues
from rewindmq.client.produce.resend import may_resend
from rewindmq.client.produce.send_request import SendRequests
from rewindmq.client.produce.send_result import STATUS_OF_CODE
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.limits import MAX_MESSAGE_BODY_BYTES
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.properties import (
    DELAY,
    MAX_RECONSUME_TIMES,
    ORIGIN_MESSAGE_ID,
    RECONSUME_TIME,
    RETRY_TOPIC,
    TRAN_MSG,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic

SEND_TIMEOUT: Final = 3.0
_TRIES: Final = 3
_COMPRESS_OVER: Final = 4_096
_FIRST_RETRY_LEVEL: Final = 3


class RetrySender:
    """The part of RocketMQ's inner producer that a consumer uses."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._topic = retry_topic(group)
        self._requests = SendRequests(
            instance,
            INNER_PRODUCER_GROUP,
            max_message_size=MAX_MESSAGE_BODY_BYTES,
            compress_over=_COMPRESS_OVER,
            default_topic_queue_nums=4,
        )

    async def send(self, message: MessageExt, reconsume_times: int, max_reconsume_times: int) -> None:
        """Send a copy of ``message`` with a delay that grows with the number of its deliveries.

        Args:
            reconsume_times: number of earlier deliveries to store in the copy.

        Raises:
            RewindMQError: no broker accepted the copy, or it may be stored; this is the last broker's error.
        """
        properties = dict(message.properties)
        properties.pop(TRAN_MSG, None)
        properties.setdefault(ORIGIN_MESSAGE_ID, message.msg_id)
        properties[RETRY_TOPIC] = message.topic
        properties[RECONSUME_TIME] = str(reconsume_times)
        properties[MAX_RECONSUME_TIMES] = str(max_reconsume_times)
        properties[DELAY] = str(_FIRST_RETRY_LEVEL + message.reconsume_times)
        copy = Message(self._topic, message.body, flag=message.flag, properties=properties)
        outgoing = self._requests.prepare(copy)
        queues = await self._queues()
        for tries_left in range(_TRIES - 1, -1, -1):
            queue = self._instance.runtime.random.choice(queues)
            command = self._requests.command(outgoing, queue)
            header = command.header
            assert isinstance(header, SendMessageRequestHeaderV2)
            header.reconsume_times, header.max_reconsume_times = reconsume_times, max_reconsume_times
            try:
                await self._send_to(queue, command)
            except RewindMQError as error:
                if not tries_left or not may_resend(error):
                    raise
            else:
                return

    async def _send_to(self, queue: MessageQueue, command: RemotingCommand) -> None:
        address = self._instance.routes.require_master_address(queue.broker_name)
        response = await self._instance.remoting.invoke(address, command, SEND_TIMEOUT)
        if response.code not in STATUS_OF_CODE:
            raise ResponseError(response.code, response.remark)

    async def _queues(self) -> list[MessageQueue]:
        routes = self._instance.routes
        route = routes.routes.get(self._topic)
        if route is None and await routes.refresh(self._topic):
            route = routes.routes.get(self._topic)
        queues = publish_queues(self._topic, route) if route is not None else []
        if not queues:
            raise ClientError(f"No route info of this topic: {self._topic}")
        return queues
