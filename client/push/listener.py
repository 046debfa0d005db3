"""What an application hands to a push consumer, and what it answers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.properties import RETRY_TOPIC


class ConsumeConcurrentlyStatus(StrEnum):
    """A listener's verdict on one batch."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


@dataclass(frozen=True, slots=True)
class ReconsumeLater:
    """RECONSUME_LATER, and what Java's listeners say through ``ConsumeConcurrentlyContext``.

    Attributes:
        delay_level: 0 lets the broker choose (10 s at first, more each time), 1 to 18 is a delay level, -1
            means the dead-letter topic at once.
        consumed: so many messages at the start of the batch succeeded all the same (``ackIndex`` + 1).
    """

    delay_level: int = 0
    consumed: int = 0


ListenerResult = ConsumeConcurrentlyStatus | ReconsumeLater | None
# Called with one batch of at most ``consume_message_batch_max_size`` messages of one queue. None, or an
# exception, means RECONSUME_LATER (docs/spec/client.md C.10). A plain function runs on a worker thread, an
# async one on the event loop.
MessageListener = Callable[[Sequence[MessageExt]], ListenerResult | Awaitable[ListenerResult]]


class ConsumeOrderlyStatus(StrEnum):
    """An orderly listener's verdict on one batch.

    With ``auto_commit``, COMMIT and ROLLBACK count as SUCCESS. Without it, SUCCESS only goes on to the next
    batch; COMMIT makes everything since the last COMMIT progress, ROLLBACK has all of it delivered again.
    """

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@dataclass(slots=True)
class ConsumeOrderlyContext:
    """What an orderly listener may say besides its verdict.

    Attributes:
        auto_commit: each batch is committed by itself.
        suspend_current_queue_time_millis: pause before the queue's next delivery after SUSPEND or ROLLBACK,
            ms, brought into 10 to 30,000; -1: the consumer's option of that name.
    """

    message_queue: MessageQueue
    auto_commit: bool = True
    suspend_current_queue_time_millis: int = -1


OrderlyResult = ConsumeOrderlyStatus | None
# Called with one batch of a queue after the other, never two of one queue at the same time. None, or an
# exception, means SUSPEND_CURRENT_QUEUE_A_MOMENT (docs/spec/client.md C.11).
MessageListenerOrderly = Callable[
    [Sequence[MessageExt], ConsumeOrderlyContext], OrderlyResult | Awaitable[OrderlyResult]
]


def is_async_listener(listener: object) -> bool:
    """Whether calling it gives a coroutine: an async function, or an object whose ``__call__`` is one."""
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
        getattr(listener, "__call__", None)  # noqa: B004 - the method itself is wanted
    )


def restore_topics(messages: Sequence[MessageExt]) -> None:
    """A retried message shows the topic it was first sent to (``resetRetryAndNamespace``)."""
    for message in messages:
        message.topic = message.properties.get(RETRY_TOPIC, message.topic)
