"""What the request handlers of a broker share: one facade for each package of the broker.

Each package has a ``build.py`` with the function ``build``, which gets all that the package needs and returns
its facade: a frozen class, unless the package has a single service. ``wiring.wire`` calls them. A handler is
``handle(context, connection, request)`` and reads ``context.FACADE.SERVICE``, such as
``context.offsets.committer``: the facades that it names are what it touches. A new package adds its ``build``
to the root, and one field here.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.assignment.topic_routes import TopicRouteInfoManager
from rewindmq.broker.background.build import Background
from rewindmq.broker.clients.build import Clients
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.delay.build import Delays
from rewindmq.broker.endpoints import Endpoints
from rewindmq.broker.ha.build import Replication
from rewindmq.broker.live_config import LiveConfig
from rewindmq.broker.offsets.build import Offsets
from rewindmq.broker.pop.build import PopConsumption
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.pull.build import Pulls
from rewindmq.broker.reset.build import Resets
from rewindmq.broker.send.build import Sends
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.build import Tables
from rewindmq.broker.timer.timers import TimerMessages
from rewindmq.broker.transaction.build import Transactions
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerContext:
    """The facades of one broker, built by ``wiring.wire``.

    Attributes:
        timers: None in releases without timer messages.
        pop: None in releases without POP.
        large_responses: lets long work take turns.
    """

    config: BrokerConfig
    profile: BrokerProfile
    runtime: Runtime
    endpoints: Endpoints
    store: MessageStore
    topic_routes: TopicRouteInfoManager
    stats: BrokerStats
    tables: Tables
    clients: Clients
    offsets: Offsets
    delays: Delays
    timers: TimerMessages | None
    transactions: Transactions
    sends: Sends
    replication: Replication
    pulls: Pulls
    pop: PopConsumption | None
    resets: Resets
    background: Background
    live_config: LiveConfig
    large_responses: LargeResponses
