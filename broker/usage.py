"""How full the broker's bounded tables are, for GET_BROKER_RUNTIME_INFO (28)."""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import MAX_GROUPS, MAX_TOPICS
from rewindmq.broker.shares import Shares
from rewindmq.broker.store.tables.consumer_offset import MAX_OFFSETS
from rewindmq.protocol.remoting.traffic.held_bytes import HeldBytes


def usage(context: BrokerContext) -> dict[str, str]:
    """Return ``used/limit`` by key; docs/limits.md explains the keys."""
    producers, consumers = context.clients.producers, context.clients.consumers
    return {
        "usageConnections": f"{context.endpoints.connections.count}/{context.endpoints.connections.maximum}",
        "usageTopics": f"{len(context.tables.topics)}/{MAX_TOPICS}",
        "usageConsumerGroups": f"{len(context.tables.groups)}/{MAX_GROUPS}",
        "usageConsumerOffsets": f"{len(context.offsets.table)}/{MAX_OFFSETS}",
        "usageOnlineProducerGroups": f"{len(producers.groups())}/{MAX_GROUPS}",
        "usageOnlineProducers": _shares(producers.memberships.shares),
        "usageOnlineConsumerGroups": f"{len(consumers)}/{MAX_GROUPS}",
        "usageOnlineConsumers": _shares(consumers.memberships.shares),
        "usageSubscriptionBytes": _shares(consumers.subscription_shares),
        "usageSuspendedPullBytes": _shares(context.pulls.long_polling.shares),
        "usageQueueLocks": f"{len(context.clients.queue_locks)}/{context.clients.queue_locks.shares.limit}",
        "usageWaitingReplies": _shares(context.sends.replies.waiting),
        "usageDeliveries": _shares(context.offsets.fencing.shares),
        "usageNotifiedQueues": _shares(context.pulls.notifier.shares),
        "usageUnfinishedFrameBytes": _held(context.endpoints.traffic.unfinished),
        "usageUnreadBytes": _held(context.endpoints.traffic.unread),
    }


def _shares(shares: Shares) -> str:
    return f"{shares.used}/{shares.limit}"


def _held(held: HeldBytes) -> str:
    return f"{held.total}/{held.limit}"
