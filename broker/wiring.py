"""Composition root: opens the store, and builds the broker's packages over it, each with its ``build``.

A package gets what it needs as arguments. If two need each other, the first one built gets a function that
calls the other later. Nothing is set after construction.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack

from rewindmq.broker.assignment.build import build as build_topic_routes
from rewindmq.broker.background.build import build as build_background
from rewindmq.broker.background.prefault import LogPrefault
from rewindmq.broker.background.schedule import BackgroundService
from rewindmq.broker.clients.build import build as build_clients
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.delay.build import build as build_delays
from rewindmq.broker.endpoints import Endpoints
from rewindmq.broker.ha.build import build as build_replication
from rewindmq.broker.live_config import LiveConfig
from rewindmq.broker.offsets.build import build as build_offsets
from rewindmq.broker.pop.build import build as build_pop
from rewindmq.broker.profile import PROFILES, BrokerProfile
from rewindmq.broker.pull.build import build as build_pulls
from rewindmq.broker.pull.long_polling import LongPolling
from rewindmq.broker.reset.build import build as build_resets
from rewindmq.broker.send.build import build as build_sends
from rewindmq.broker.send.build import build_appender
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.stats.build import build as build_stats
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.build import build as build_tables
from rewindmq.broker.timer.build import build as build_timers
from rewindmq.broker.transaction.build import build as build_transactions
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses


def wire(runtime: Runtime, config: BrokerConfig, disk: Disk, endpoints: Endpoints) -> BrokerContext:
    """Open the store and build all services. The caller closes the services and then the store.

    Raises:
        StoreError: if the store cannot be opened, or a file under ``config/`` cannot be read; then the store
            is closed again.
    """
    profile = PROFILES[Profile(config.profile).release]
    stats = build_stats(runtime, config, profile)
    store = MessageStore(
        config.root,
        config.store,
        runtime.clock.now_ms,
        disk,
        delay_scale=runtime.clock.scale,
        writes_v2=profile.writes_v2,
        store_host=pack_host(endpoints.address),
        put_counts=stats.puts,
        on_log_growth=LogPrefault(runtime.workers, disk).begin,
    )
    store.open()
    with ExitStack() as undo:
        undo.callback(store.close)
        context = _build(runtime, config, profile, disk, endpoints, stats, store)
        undo.pop_all()
    return context


def _build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    disk: Disk,
    endpoints: Endpoints,
    stats: BrokerStats,
    store: MessageStore,
) -> BrokerContext:
    address, host, client, master = endpoints.address, endpoints.host, endpoints.client, endpoints.ha_master

    def register(topics: Collection[str]) -> None:
        background.registration.announce(topics)

    tables = build_tables(runtime, config, disk, store, register)
    clients = build_clients(runtime, config, profile)
    offsets = build_offsets(runtime, config, disk, store, clients)
    long_polling = LongPolling(runtime.clock, runtime.timers, store.max_offset)
    appender = build_appender(
        runtime, config, profile, store, stats, tables, long_polling, master.sync_replica
    )
    delays = build_delays(runtime, config, profile, disk, store, appender)
    timers = build_timers(runtime, config, disk, store, appender) if profile.knows_timers else None
    transactions = build_transactions(
        runtime, config, profile, store, appender, tables, offsets, clients, host
    )
    half_hook, delay_hook = transactions.half.before_put, delays.hook.before_put
    timer_hook = None if timers is None else timers.hook.before_put
    sends = build_sends(
        runtime, config, profile, store, appender, tables, clients, half_hook, timer_hook, delay_hook,
        long_polling.awaited, address,
    )  # fmt: skip
    save_timer_progress = None if timers is None else timers.save_master_progress
    replication = build_replication(
        runtime, config, profile, store, master, client, address, tables, offsets, delays.offsets,
        save_timer_progress, long_polling.on_arrivals,
    )  # fmt: skip
    pulls = build_pulls(
        runtime, config, profile, store, stats, tables, clients, offsets, appender, long_polling,
        replication.has_master, host,
    )  # fmt: skip
    pop = None
    if timers is not None:
        pop = build_pop(
            runtime, config, profile, disk, store, tables, offsets, appender, timers, long_polling, stats,
            host,
        )  # fmt: skip
    large_responses = LargeResponses(runtime.timers)
    resets = build_resets(
        runtime, config, profile, store, tables, clients, offsets, pulls, pop, large_responses
    )
    slave, services = replication.slave, list[BackgroundService]()
    # Only a master delivers messages later, checks transactions, and revives what was popped.
    if slave is not None:
        services += (slave,)
    else:
        services += (delays.service, transactions.checks)
        services += () if timers is None else (timers.service,)
        services += () if pop is None else (pop.revive, pop.orders, pop.born_times)
    on_master = None if slave is None else slave.on_master
    background = build_background(
        runtime, config, profile, store, client, tables.topics, address, master.port, on_master, services
    )
    return BrokerContext(
        config=config,
        profile=profile,
        runtime=runtime,
        endpoints=endpoints,
        store=store,
        topic_routes=build_topic_routes(runtime, config, client),
        stats=stats,
        tables=tables,
        clients=clients,
        offsets=offsets,
        delays=delays,
        timers=timers,
        transactions=transactions,
        sends=sends,
        replication=replication,
        pulls=pulls,
        pop=pop,
        resets=resets,
        background=background,
        live_config=LiveConfig(config, tables.topics.renew),
        large_responses=large_responses,
    )
