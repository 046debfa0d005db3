"""Sends NOTIFY_CONSUMER_IDS_CHANGED (40) to a group's consumers, in rounds.

Source: RocketMQ 4.9.4 ``DefaultConsumerIdsChangeListener``, which notifies all consumers at each change.
Changed: after a round, a group of more than 50 consumers pauses for a time that grows with their number. One
round stands for all changes of the pause. So there is a round after the last change, and a large group that
changes often does not occupy the broker. A client, too, rebalances once for several notifications, and asks
for the group's consumers then.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from rewindmq.broker.clients.consumer_manager import ConsumerGroup
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.header.client import NotifyConsumerIdsChangedRequestHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Timers

SMALL_GROUP: Final = 50
# The pause after a round, real seconds for each consumer: 0.5 s with 500 consumers. Each of them asks for the
# list of all, so a round costs some times the notifications.
PAUSE_SECONDS: Final = 0.001
# Consumers notified in one turn of the event loop.
_CONSUMERS_PER_TURN: Final = 64

_log = logging.getLogger(__name__)


class ConsumerIdsChanged:
    """Notifies the consumers of changed groups."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        # By name: groups in a round or its pause, with the group if it has changed since the round began.
        self._changed: dict[str, ConsumerGroup | None] = {}
        self._next_steps: dict[str, Cancellable] = {}

    def notify(self, group: ConsumerGroup) -> None:
        """Notify every consumer of a group that changed, now or after the group's pause."""
        if group.name in self._changed:
            self._changed[group.name] = group
            return
        self._changed[group.name] = None
        self._send(group.name, deque(group.channels), len(group.channels))

    def close(self) -> None:
        """Send nothing more."""
        for step in self._next_steps.values():
            step.cancel()
        self._next_steps.clear()

    def _send(self, name: str, left: deque[Connection], count: int) -> None:
        header = NotifyConsumerIdsChangedRequestHeader(name)
        for _ in range(min(len(left), _CONSUMERS_PER_TURN)):
            try:
                left.popleft().send_oneway(RemotingCommand(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header))
            except ConnectionLostError as error:
                _log.info("can not send NOTIFY_CONSUMER_IDS_CHANGED (40) for group %s: %s", name, error)
        call = self._timers.call_timeout
        if left:
            self._next_steps[name] = call(0.0, self._send, name, left, count)
        elif count > SMALL_GROUP:
            self._next_steps[name] = call(count * PAUSE_SECONDS, self._end, name)
        else:
            self._end(name)

    def _end(self, name: str) -> None:
        self._next_steps.pop(name, None)
        group = self._changed.pop(name)
        if group is not None:
            self.notify(group)
