"""Builds the replication of a broker: a master's side or a slave's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.ha.master import HaMaster
from rewindmq.broker.ha.slave import Slave
from rewindmq.broker.ha.synchronize import SlaveSynchronize
from rewindmq.broker.offsets.build import Offsets
from rewindmq.broker.offsets.delay_offsets import DelayOffsets
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.store.messages.replica import Arrival
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.build import Tables
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Replication:
    """The broker's part in replication.

    Attributes:
        master: without connections at a slave.
        slave: None at a master.
    """

    master: HaMaster
    slave: Slave | None

    def has_master(self) -> bool:
        """Return True at a slave if the name server knew its master at the last registration."""
        return self.slave is not None and self.slave.has_master


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    master: HaMaster,
    client: RemotingClient,
    address: str,
    tables: Tables,
    offsets: Offsets,
    delay_offsets: DelayOffsets,
    save_timer_progress: Callable[[bytes], None] | None,
    on_arrivals: Callable[[Sequence[Arrival]], None],
) -> Replication:
    """Let a master serve its log, or make the store a slave's; a slave's ``Background`` begins to follow.

    Args:
        save_timer_progress: see ``SlaveSynchronize``.
        on_arrivals: called with the messages that a slave has copied.
    """
    if not config.is_slave:
        master.serve(store)
        return Replication(master, None)
    store.become_replica()
    synchronize = SlaveSynchronize(
        client,
        runtime.workers,
        address,
        store,
        runtime.timers,
        tables.topics,
        tables.groups,
        offsets.table,
        delay_offsets,
        removes_offsets=profile.offsets_go_with_topic,
        save_timer_progress=save_timer_progress,
    )
    wake = on_arrivals if profile.slave_wakes_pulls else _ignore_arrivals
    return Replication(master, Slave(runtime, config, store, synchronize, wake))


def _ignore_arrivals(arrivals: Sequence[Arrival]) -> None:
    """Do nothing: the 5 s loop of ``LongPolling`` runs the suspended pulls again."""
