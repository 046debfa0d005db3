"""Builds the registers of connected clients."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.clients.consumer_ids_changed import ConsumerIdsChanged
from rewindmq.broker.clients.consumer_manager import ConsumerGroup, ConsumerManager
from rewindmq.broker.clients.producer_manager import ProducerManager
from rewindmq.broker.clients.queue_locks import RebalanceLockManager
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Clients:
    """The connected clients, and the queues that consumers have locked."""

    producers: ProducerManager
    consumers: ConsumerManager
    queue_locks: RebalanceLockManager
    ids_changed: ConsumerIdsChanged

    def on_close(self, connection: Connection) -> None:
        """Remove the clients of a closed connection."""
        self.producers.on_close(connection)
        self.consumers.on_close(connection)
        self.queue_locks.on_close(connection)


def build(runtime: Runtime, config: BrokerConfig, profile: BrokerProfile) -> Clients:
    """Return the registers, empty."""
    ids_changed = ConsumerIdsChanged(runtime.timers)

    def notify(group: ConsumerGroup) -> None:
        # The setting may change while the broker runs.
        if config.notify_consumer_ids_changed_enable:
            ids_changed.notify(group)

    return Clients(
        ProducerManager(),
        ConsumerManager(notify, tell_broadcast_on_close=profile.notifies_broadcast_on_close),
        RebalanceLockManager(runtime.clock.monotonic),
        ids_changed,
    )
