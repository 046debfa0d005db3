"""Types of listeners and of their results."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import RETRY_TOPIC
from rewindmq.protocol.message_queue import MessageQueue


class ConsumeConcurrentlyStatus(StrEnum):
    """A listener's result for one batch."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


@dataclass(frozen=True, slots=True)
class ReconsumeLater:
    """RECONSUME_LATER with the settings of Java's ``ConsumeConcurrentlyContext``.

    Attributes:
        delay_level: 0 lets the broker choose (10 s at first, longer each time); 1 to 18 is a delay level;
            -1 sends the messages to the dead-letter topic at once.
        consumed: number of messages at the start of the batch that succeeded (``ackIndex`` + 1).
    """

    delay_level: int = 0
    consumed: int = 0


ListenerResult = ConsumeConcurrentlyStatus | ReconsumeLater | None
# Called with one batch of at most `consume_message_batch_max_size` messages of one queue. None, or an
# exception, means RECONSUME_LATER (docs/spec/client.md C.10). An async listener runs on the event loop, any
# other on a worker thread.
MessageListener = Callable[[Sequence[MessageExt]], ListenerResult | Awaitable[ListenerResult]]


class ConsumeOrderlyStatus(StrEnum):
    """An orderly listener's result for one batch.

    With ``auto_commit``, COMMIT and ROLLBACK count as SUCCESS. Without it, SUCCESS continues with the next
    batch and commits nothing. COMMIT commits everything since the last COMMIT; ROLLBACK redelivers it.
    """

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@dataclass(slots=True)
class ConsumeOrderlyContext:
    """Settings that an orderly listener may change during a call.

    Attributes:
        auto_commit: True commits each batch that succeeds.
        suspend_current_queue_time_millis: pause of the queue after SUSPEND or ROLLBACK, ms, limited to 10
            to 30,000; -1: the consumer's option of that name.
    """

    message_queue: MessageQueue
    auto_commit: bool = True
    suspend_current_queue_time_millis: int = -1


OrderlyResult = ConsumeOrderlyStatus | None
# Called with the batches of a queue one after the other; batches of several queues may overlap. None, or an
# exception, means SUSPEND_CURRENT_QUEUE_A_MOMENT (docs/spec/client.md C.11).
MessageListenerOrderly = Callable[
    [Sequence[MessageExt], ConsumeOrderlyContext], OrderlyResult | Awaitable[OrderlyResult]
]


def is_async_listener(listener: object) -> bool:
    """True for an async function, or an object whose ``__call__`` is one."""
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
        getattr(listener, "__call__", None)  # noqa: B004 - the method itself is wanted
    )


def restore_topics(messages: Sequence[MessageExt]) -> None:
    """Set the topic of retried messages to their original topic (``resetRetryAndNamespace``)."""
    for message in messages:
        message.topic = message.properties.get(RETRY_TOPIC, message.topic)
