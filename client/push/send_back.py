"""SendBack: asks the broker to redeliver a message to the group later.

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

# RocketMQ's limit if ``DefaultMQPushConsumer#maxReconsumeTimes`` has its default, -1.
DEFAULT_MAX_RECONSUME_TIMES: Final = 16

_log = logging.getLogger(__name__)


class SendBack:
    """Sends messages of one consumer group back to the broker.

    Args:
        max_reconsume_times: retries of a message before the dead-letter topic; None: 16.
    """

    def __init__(self, instance: ClientInstance, group: str, max_reconsume_times: int | None) -> None:
        self._instance = instance
        self._group = group
        self._retries = RetrySender(instance, group)
        self._limit = DEFAULT_MAX_RECONSUME_TIMES if max_reconsume_times is None else max_reconsume_times

    async def send(self, message: MessageExt, delay_level: int, queue: MessageQueue) -> None:
        """Send CONSUMER_SEND_MSG_BACK (36) to the message's broker; else send a copy to the retry topic.

        Args:
            delay_level: 0 lets the broker choose; a negative level means the dead-letter topic at once. The
                copy to the retry topic ignores it.
            queue: the queue that the message was pulled from.

        Raises:
            RewindMQError: no broker accepted the message.
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
