"""What an application hands to a push consumer, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum

from rewindmq.protocol.message import MessageExt


class ConsumeConcurrentlyStatus(StrEnum):
    """A listener's verdict on one batch."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


ListenerResult = ConsumeConcurrentlyStatus | None
# Called with one batch of at most ``consume_message_batch_max_size`` messages of one queue. None, or an
# exception, means RECONSUME_LATER (behaviour.md C.10). A plain function runs on a worker thread, an async
# one on the event loop.
MessageListener = Callable[[Sequence[MessageExt]], ListenerResult | Awaitable[ListenerResult]]
