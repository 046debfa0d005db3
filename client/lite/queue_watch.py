"""Notifies an application when the queues of a topic have changed.

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


class QueueListeners:
    """The change listeners of one consumer, by topic.

    Args:
        fetch: returns every queue of a topic now; raises ``RewindMQError``.
    """

    def __init__(self, fetch: Callable[[str], Awaitable[list[MessageQueue]]]) -> None:
        self._fetch = fetch
        self._listeners: dict[str, QueueChangeListener] = {}
        self._known: dict[str, list[MessageQueue]] = {}
        self._periodic: PeriodicTask | None = None

    def add(self, topic: str, listener: QueueChangeListener) -> None:
        """Watch a topic; the listener replaces an earlier listener of the topic."""
        self._listeners[topic] = listener

    async def begin(self, runtime: Runtime, interval: float) -> None:
        """Look now without calling listeners, then 10 s from now and every ``interval`` seconds.

        Raises:
            RewindMQError: the queues of a topic are unknown.
        """
        for topic in self._listeners:
            self._known[topic] = await self._fetch(topic)
        self._periodic = PeriodicTask(runtime, _FIRST_CHECK, interval, self._compare)

    async def stop(self) -> None:
        """Stop looking."""
        if self._periodic is not None:
            await self._periodic.stop()

    def cancel(self) -> None:
        """Stop looking, without waiting for a check in progress."""
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
