"""Sending a message back, so that its group gets it again later.

Specification: docs/spec/broker.md B.13, docs/spec/client.md C.10.

Source: RocketMQ 4.9.4 ``DefaultMQPushConsumerImpl#sendMessageBack``.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.client.core.instance import ClientInstance
from rewindmq.client.push.retry_send import RetrySender
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue

# ``DefaultMQPushConsumer#maxReconsumeTimes`` -1.
DEFAULT_MAX_RECONSUME_TIMES: Final = 16

_log = logging.getLogger(__name__)


class SendBack:
    """Sends messages of one consumer group back.

    Args:
        max_reconsume_times: retries of a message before the dead-letter topic; None: 16.
    """

    def __init__(self, instance: ClientInstance, group: str, max_reconsume_times: int | None) -> None:
        self._instance = instance
        self._group = group
        self._retries = RetrySender(instance, group)
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
            address = await self._instance.routes.find_master_address(queue.topic, queue.broker_name)
            await self._instance.api.send_message_back(address, header)
        except RewindMQError as error:
            _log.warning("sendMessageBack exception, group %s, %s: %s", self._group, message.msg_id, error)
            await self._retries.send(message, message.reconsume_times + 1, self._limit)
