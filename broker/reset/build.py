"""Builds what the reset modes share."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.clients.build import Clients
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.offsets.build import Offsets
from rewindmq.broker.pop.build import PopConsumption
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.pull.build import Pulls
from rewindmq.broker.reset.announcer import ResetAnnouncer
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.build import Tables
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses


@dataclass(frozen=True, slots=True)
class Resets:
    """All that a reset reads and changes; each mode is a function of it.

    Attributes:
        announcer: informs the consumers.
        large_responses: takes turns with other long work.
    """

    runtime: Runtime
    config: BrokerConfig
    profile: BrokerProfile
    store: MessageStore
    tables: Tables
    clients: Clients
    offsets: Offsets
    pop: PopConsumption | None
    announcer: ResetAnnouncer
    large_responses: LargeResponses


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    tables: Tables,
    clients: Clients,
    offsets: Offsets,
    pulls: Pulls,
    pop: PopConsumption | None,
    large_responses: LargeResponses,
) -> Resets:
    """Return the parts of resets.

    Args:
        pulls: those suspended end with a reset.
    """
    announcer = ResetAnnouncer(runtime.timers, pulls.long_polling, pulls.notifier)
    return Resets(runtime, config, profile, store, tables, clients, offsets, pop, announcer, large_responses)
