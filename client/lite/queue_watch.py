"""Telling an application that a topic has other queues than before.

Source: RocketMQ 4.9.4 ``DefaultLitePullConsumerImpl#fetchTopicMessageQueuesAndCompare``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from rewindmq.client.core.periodic import PeriodicTask
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Runtime

_FIRST_CHECK: Final = 10.0

QueueChangeListener = Callable[[str, list[MessageQueue]], None]

_log = logging.getLogger(__name__)


class QueueWatch:
    """The listeners of one consumer, by topic.

    Args:
        fetch: every queue of a topic now; raises ``RewindMQError``.
    """

    def __init__(self, fetch: Callable[[str], Awaitable[list[MessageQueue]]]) -> None:
        self._fetch = fetch
        self._listeners: dict[str, QueueChangeListener] = {}
        self._known: dict[str, list[MessageQueue]] = {}
        self._periodic: PeriodicTask | None = None

    def add(self, topic: str, listener: QueueChangeListener) -> None:
        """Watch a topic; another listener of it is replaced."""
        self._listeners[topic] = listener

    async def begin(self, runtime: Runtime, interval: float) -> None:
        """Look now, without telling anybody, then 10 s from now and every ``interval`` seconds.

        Raises:
            RewindMQError: a topic's queues are not known.
        """
        for topic in self._listeners:
            self._known[topic] = await self._fetch(topic)
        self._periodic = PeriodicTask(runtime, _FIRST_CHECK, interval, self._compare)

    async def stop(self) -> None:
        """Look no more."""
        if self._periodic is not None:
            await self._periodic.stop()

    def cancel(self) -> None:
        """Look no more, without waiting."""
        if self._periodic is not None:
            self._periodic.cancel()

    async def _compare(self) -> None:
        for topic, listener in list(self._listeners.items()):
            try:
                queues = await self._fetch(topic)
            except RewindMQError as error:
                _log.warning("fetchMessageQueuesAndCompare, topic %s: %s", topic, error)
                continue
            known = self._known.get(topic)
            self._known[topic] = queues
            if known is not None and queues != known:
                listener(topic, queues)
