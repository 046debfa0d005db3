"""PopRebalance: takes the queues that a broker assigns (RocketMQ 5.5.0 ``RebalanceImpl``).

A broker may assign queues for pulling, too: those of the group's retry topic, and all queues when an
administrator has set the mode PULL. Kept: without an answer the consumer keeps its queues; a group that pulls
a topic also reads the topic's retry topic.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any

from rewindmq.client.consume.rebalance import Rebalance
from rewindmq.client.consume.selector import make_subscription
from rewindmq.client.push.pop.assignments import Assignments
from rewindmq.client.push.pop.pop_queues import PopQueues
from rewindmq.protocol.body.assignment import MessageRequestMode
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX
from rewindmq.protocol.pop.topics import pop_retry_topic

_log = logging.getLogger(__name__)


class PopRebalance(Rebalance):
    """Assigns and drops the queues of a consumer that pops.

    Args:
        subscriptions: the consumer's own.
        rebalance: the arguments of ``Rebalance``.
    """

    def __init__(
        self,
        *rebalance: Any,
        assignments: Assignments,
        pops: PopQueues,
        subscriptions: MutableMapping[str, SubscriptionData],
        **options: Any,
    ) -> None:
        super().__init__(*rebalance, **options)
        self._assignments = assignments
        self._pops = pops
        self._subscriptions = subscriptions

    async def run(self, subscriptions: Mapping[str, SubscriptionData]) -> bool:
        """Rebalance all subscribed topics once; see ``Rebalance.run``."""
        balanced = await super().run(subscriptions)
        self._pops.keep_topics(subscriptions.keys())
        return balanced

    def broker_names(self, topic: str) -> list[str]:
        """Return the brokers with readable queues of the topic."""
        return sorted({queue.broker_name for queue in self.topic_queues.get(topic) or ()})

    async def _run_topic(self, topic: str) -> bool:
        names = self.broker_names(topic)
        if not names:
            _log.debug("doRebalance, %s, but the topic[%s] not exist.", self._group, topic)
            return True
        assigned = await self._assignments.query(topic, names)
        is_retry = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        if assigned is None:
            # The broker may not know this consumer yet, or the topic.
            return is_retry
        pulled = [each.message_queue for each in assigned if each.mode is MessageRequestMode.PULL]
        popped = [each.message_queue for each in assigned if each.mode is MessageRequestMode.POP]
        if not is_retry:
            self._follow(topic, pulls=bool(pulled) and not popped, pops=bool(popped) and not pulled)
        changed = self._pops.assign(topic, popped)
        return await self._own(topic, pulled, changed=changed)

    def _follow(self, topic: str, *, pulls: bool, pops: bool) -> None:
        """Subscribe to the topic's retry topic while the group pulls the topic."""
        retry = pop_retry_topic(topic, self._group)
        if pops:
            self._subscriptions.pop(retry, None)
        elif pulls and retry not in self._subscriptions:
            now_ms = self._instance.runtime.clock.now_ms()
            self._subscriptions[retry] = make_subscription(retry, "*", now_ms)
