"""Listeners of the kit: they call the application's listener and record what it did with each message."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from rewindmq.client.push.listener import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ReconsumeLater,
    is_async_listener,
)
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.remoting.runtime import Workers
from rewindmq.testing.errors import KitError
from rewindmq.testing.messages.deliveries import Deliveries, Delivery, Outcome

# Called with the messages of one batch, and for orderly consumption also with its context.
Listener = Callable[..., Any]

# The limit of a concurrent consumer without an option (RocketMQ 4.9.4 ``DefaultMQPushConsumer``).
DEFAULT_RECONSUMES: Final = 16
_TO_DEAD_LETTERS: Final = -1


class RecordingListener:
    """Calls a listener of either kind.

    None counts as success: a test's listener need not return a status.

    Args:
        listener: the application's; None accepts every message.
        max_reconsume_times: deliveries of a message that may fail before it becomes a dead letter; None: no
            limit.

    Raises:
        KitError: the listener cannot be called with the arguments.
    """

    def __init__(
        self,
        listener: Listener | None,
        deliveries: Deliveries,
        workers: Workers,
        *,
        is_orderly: bool,
        max_reconsume_times: int | None,
    ) -> None:
        self._listener = listener
        self._deliveries = deliveries
        self._workers = workers
        self._max_reconsume_times = max_reconsume_times
        self._takes_context = is_orderly and listener is not None and takes(listener, 2)
        if listener is not None and not self._takes_context and not takes(listener, 1):
            wanted = "(messages) or (messages, context)" if is_orderly else "(messages)"
            raise KitError(f"the listener {listener!r} cannot be called with {wanted}")

    def concurrent(self, client_id: Callable[[], str]) -> Callable[[Sequence[MessageExt]], Awaitable[Any]]:
        """Return the listener of one concurrent consumer."""

        async def listener(messages: Sequence[MessageExt]) -> Any:
            begun = self._deliveries.begin(messages, client_id())
            answer: Any = ConsumeConcurrentlyStatus.RECONSUME_LATER
            try:
                answer = await self._call(messages)
                if answer is None:
                    answer = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
                return answer
            finally:
                self._end_concurrent(begun, answer)

        return listener

    def orderly(
        self, client_id: Callable[[], str]
    ) -> Callable[[Sequence[MessageExt], ConsumeOrderlyContext], Awaitable[Any]]:
        """Return the listener of one orderly consumer."""

        async def listener(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> Any:
            begun = self._deliveries.begin(messages, client_id())
            answer: Any = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            try:
                answer = await (
                    self._call(messages, context) if self._takes_context else self._call(messages)
                )
                if answer is None:
                    answer = ConsumeOrderlyStatus.SUCCESS
                return answer
            finally:
                is_done = answer in (ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT)
                for delivery in begun:
                    self._end(delivery, is_done=is_done)

        return listener

    async def _call(self, *arguments: object) -> Any:
        if self._listener is None:
            return None
        if is_async_listener(self._listener):
            return await self._listener(*arguments)
        return await self._workers.run(self._listener, *arguments)

    def _end_concurrent(self, begun: Sequence[Delivery], answer: object) -> None:
        if isinstance(answer, ReconsumeLater):
            for index, delivery in enumerate(begun):
                is_dead = answer.delay_level == _TO_DEAD_LETTERS
                self._end(delivery, is_done=index < answer.consumed, is_dead=is_dead)
            return
        for delivery in begun:
            self._end(delivery, is_done=answer == ConsumeConcurrentlyStatus.CONSUME_SUCCESS)

    def _end(self, delivery: Delivery, *, is_done: bool, is_dead: bool = False) -> None:
        limit = self._max_reconsume_times
        if is_done:
            outcome = Outcome.SUCCEEDED
        elif is_dead or (limit is not None and delivery.reconsume_times >= limit):
            outcome = Outcome.DEAD
        else:
            outcome = Outcome.FAILED
        self._deliveries.end(delivery, outcome)


def takes(listener: Listener, count: int) -> bool:
    """Return whether a listener can be called with ``count`` positional arguments."""
    try:
        inspect.signature(listener).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        # A built-in function without a signature: the call will show it.
        return True
    return True
