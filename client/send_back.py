"""Sending a message back, so that its group gets it again later (``behaviour.md`` B.13, C.10).

Source: RocketMQ 4.9.4 ``DefaultMQPushConsumerImpl#sendMessageBack``. Changed: the copy that is sent when 36
fails names its original id (there: lost again before it is sent), and its body stays compressed as it was.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.client.instance import INNER_PRODUCER_GROUP, ClientInstance
from rewindmq.client.route import PublishInfo, publish_queues
from rewindmq.client.send_result import STATUS_OF_CODE
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import ClientError, RequestTimeoutError, ResponseError, RewindMQError
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import DEFAULT_TOPIC, retry_topic
from rewindmq.protocol.properties import (
    DELAY,
    NAME_VALUE_SEPARATOR,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    TRAN_MSG,
    format_properties,
)
from rewindmq.protocol.sysflag import COMPRESSION_TYPE_MASK, MessageSysFlag

# ``DefaultMQPushConsumer#maxReconsumeTimes`` -1.
DEFAULT_MAX_RECONSUME_TIMES: Final = 16
FIRST_RETRY_LEVEL: Final = 3
_SEND_SECONDS: Final = 3.0
_TRIES: Final = 3
_COMPRESSION: Final = int(MessageSysFlag.COMPRESSED) | COMPRESSION_TYPE_MASK

_log = logging.getLogger(__name__)


class SendBack:
    """Sends messages of one consumer group back.

    Args:
        max_reconsume_times: retries of a message before the dead-letter topic; None: 16.
    """

    def __init__(self, instance: ClientInstance, group: str, max_reconsume_times: int | None) -> None:
        self._instance = instance
        self._group = group
        self._limit = DEFAULT_MAX_RECONSUME_TIMES if max_reconsume_times is None else max_reconsume_times

    async def send(self, message: MessageExt, delay_level: int, queue: MessageQueue) -> None:
        """Have it delivered again: by 36 at the broker it came from, else as a message to the retry topic.

        Args:
            delay_level: 0 lets the broker choose, a negative one means the dead-letter topic at once; only 36
                knows it.
            queue: where the message was pulled from.

        Raises:
            RewindMQError: neither was accepted.
        """
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=message.topic,
            max_reconsume_times=self._limit,
        )
        try:
            await self._instance.api.send_message_back(await self._master_address(queue), header)
        except RewindMQError as error:
            _log.warning("sendMessageBack exception, group %s, %s: %s", self._group, message.msg_id, error)
            await self.send_as_normal_message(message)

    async def send_as_normal_message(self, message: MessageExt) -> None:
        """Send a copy to the retry topic, on any broker that has it.

        Raises:
            RewindMQError: nobody took it.
        """
        topic = retry_topic(self._group)
        queues = publish_queues(topic, await self._instance.api.topic_route(topic))
        if not queues:
            raise ClientError(f"No route info of this topic: {topic}")
        info = PublishInfo(queues, self._instance.runtime.random.getrandbits(16))
        failed: str | None = None
        for tries_left in range(_TRIES - 1, -1, -1):
            queue = info.select(failed)
            failed = queue.broker_name
            try:
                await self._send_copy(message, queue)
                return
            except RewindMQError as error:
                if not tries_left or isinstance(error, RequestTimeoutError):
                    raise
                _log.warning("sending %s back to %s failed, trying again: %s", message.msg_id, queue, error)

    async def _send_copy(self, message: MessageExt, queue: MessageQueue) -> None:
        instance = self._instance
        header = SendMessageRequestHeaderV2(
            INNER_PRODUCER_GROUP,
            queue.topic,
            DEFAULT_TOPIC,
            4,
            queue.queue_id,
            message.sys_flag & _COMPRESSION,
            instance.runtime.clock.now_ms(),
            message.flag,
            format_properties(_properties_of_copy(message)),
            message.reconsume_times + 1,
            False,
            self._limit,
        )
        command = instance.api.command(RequestCode.SEND_MESSAGE_V2, header, message.stored_body)
        address = await self._master_address(queue)
        response = await instance.remoting.invoke(address, command, _SEND_SECONDS)
        if response.code not in STATUS_OF_CODE:
            raise ResponseError(response.code, response.remark)

    async def _master_address(self, queue: MessageQueue) -> str:
        routes = self._instance.routes
        address = routes.master_address(queue.broker_name)
        if address is None:
            await routes.refresh(queue.topic)
            address = routes.master_address(queue.broker_name)
        if address is None:
            raise ClientError(f"Broker[{queue.broker_name}] master node does not exist")
        return address


def _properties_of_copy(message: MessageExt) -> dict[str, str]:
    properties = {
        name: value for name, value in message.properties.items() if NAME_VALUE_SEPARATOR not in value
    }
    properties.pop(TRAN_MSG, None)
    properties.setdefault(ORIGIN_MESSAGE_ID, message.offset_message_id)
    properties[RETRY_TOPIC] = message.topic
    properties[DELAY] = str(FIRST_RETRY_LEVEL + message.reconsume_times)
    return properties
