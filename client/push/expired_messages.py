"""Sends back messages whose listener runs for too long, so that their queue can progress.

Source: RocketMQ 4.9.4 ``ProcessQueue#cleanExpiredMsg`` (docs/spec/client.md C.6). Only the first messages of
a queue are checked, because they block its progress. As in RocketMQ, sending them back does not update the
offset; the next consumed message does.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue

EXPIRED_LEVEL: Final = 3
_MESSAGES_PER_QUEUE: Final = 16

_log = logging.getLogger(__name__)

SendBackCall = Callable[[MessageExt, int, MessageQueue], Awaitable[None]]


async def send_expired_back(
    process_queues: Mapping[MessageQueue, ProcessQueue],
    expired: Collection[tuple[ProcessQueue, int]],
    send_back: SendBackCall,
) -> None:
    """Check every queue once, and send expired messages back to the broker.

    Args:
        expired: queue and offset of each message whose listener call takes too long.
    """
    for queue, process_queue in list(process_queues.items()):
        for _ in range(min(process_queue.cached_count, _MESSAGES_PER_QUEUE)):
            message = process_queue.first_message
            if message is None or process_queue.dropped:
                break
            if (process_queue, message.queue_offset) not in expired:
                break
            try:
                await send_back(message, EXPIRED_LEVEL, queue)
            except RewindMQError as error:
                _log.error("send expired msg exception, %s: %s", message.msg_id, error)
                break
            _log.info(
                "send expire msg back. msgId=%s, %s, queueOffset=%d",
                message.msg_id,
                queue,
                message.queue_offset,
            )
            if process_queue.first_message is message:
                process_queue.remove_messages((message,))
