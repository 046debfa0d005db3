"""Composition root: builds and connects the broker's services over an open store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from rewindmq.broker.background.flush import BackgroundFlush
from rewindmq.broker.background.name_server import BrokerIdentity
from rewindmq.broker.background.prefault import LogPrefault
from rewindmq.broker.background.registration import RegistrationService
from rewindmq.broker.background.retention import Retention
from rewindmq.broker.background.schedule import BackgroundService
from rewindmq.broker.background.sync_flush import SyncFlush
from rewindmq.broker.clients.consumer_manager import ConsumerGroup, ConsumerManager
from rewindmq.broker.clients.producer_manager import ProducerManager
from rewindmq.broker.clients.queue_locks import RebalanceLockManager
from rewindmq.broker.config import BrokerConfig, BrokerRole
from rewindmq.broker.context import BrokerContext
from rewindmq.broker.delay.delivery import DelayService
from rewindmq.broker.delay.hook import DelayHook
from rewindmq.broker.ha.master import HaMaster
from rewindmq.broker.ha.slave import Slave
from rewindmq.broker.ha.sync_replica import SyncReplica
from rewindmq.broker.ha.synchronize import SlaveSynchronize
from rewindmq.broker.live_config import LiveConfig
from rewindmq.broker.offsets.committer import OffsetCommitter
from rewindmq.broker.offsets.delay_offsets import DelayOffsets
from rewindmq.broker.offsets.fencing import FencedCommits, Fencing
from rewindmq.broker.offsets.flush import OffsetFlush
from rewindmq.broker.offsets.reset_offset_table import ResetOffsetTable
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.pop.build import build as build_pop
from rewindmq.broker.profile import PROFILES, BrokerProfile
from rewindmq.broker.pull.broker_suggester import BrokerSuggester
from rewindmq.broker.pull.long_polling import LongPolling
from rewindmq.broker.pull.offset_moved import OffsetMovedLog
from rewindmq.broker.pull.plain_pulls import plain_pulls
from rewindmq.broker.pull.puller import MessagePuller
from rewindmq.broker.pull.reset_announcer import ResetAnnouncer
from rewindmq.broker.pull.reset_notifier import ResetNotifier
from rewindmq.broker.pull.reset_redirector import ResetRedirector
from rewindmq.broker.pull.validator import PullValidator
from rewindmq.broker.send.added_properties import added_properties, added_text, region_properties
from rewindmq.broker.send.answer import SendAnswers
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.batch_sender import BatchSender
from rewindmq.broker.send.plain_sends import plain_sends
from rewindmq.broker.send.put_message_hook import PutMessageHooks
from rewindmq.broker.send.reply_sender import ReplySender
from rewindmq.broker.send.sender import MessageSender, refuse_inner_batch
from rewindmq.broker.send.validator import SendValidator
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.stats.manager import BrokerStatsManager
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.messages.replica import Arrival
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.flush import TableFlush
from rewindmq.broker.tables.message_request_mode import MessageRequestModeManager
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.broker.timer.build import build as build_timers
from rewindmq.broker.transaction.check import CheckParts
from rewindmq.broker.transaction.check_back import CheckBacks
from rewindmq.broker.transaction.check_service import TransactionCheckService
from rewindmq.broker.transaction.end import TransactionEnds
from rewindmq.broker.transaction.half import HalfMessages
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.accept.limit import ConnectionLimit
from rewindmq.protocol.remoting.address import pack_host
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses
from rewindmq.protocol.remoting.speedups import FrameKernel
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic
from rewindmq.protocol.remoting.unique_id import UniqueIdGenerator

_CONFIG_FOLDER: Final = "config"
# The port in a packed store host follows the address.
_PORT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Services:
    """The services that ``Broker`` starts and stops.

    Attributes:
        sync_flush: None under ASYNC_FLUSH.
        sync_replica: None except at a SYNC_MASTER.
        background: services with periodic work, closed in reverse order.
        frame_kernels: answer plain sends and pulls; none in pure Python.
    """

    context: BrokerContext
    background_flush: BackgroundFlush
    sync_flush: SyncFlush | None
    sync_replica: SyncReplica | None
    background: tuple[BackgroundService, ...]
    frame_kernels: Sequence[FrameKernel]


def wire(  # noqa: PLR0915 - one statement for each service of a broker
    runtime: Runtime,
    config: BrokerConfig,
    disk: Disk,
    store: MessageStore,
    client: RemotingClient,
    address: str,
    notify: Callable[[ConsumerGroup], None],
    ha_master: HaMaster,
    traffic: Traffic,
    connections: ConnectionLimit,
) -> Services:
    """Build and connect all services over an open store, and load the tables.

    Args:
        address: ``host:port`` as registered and written into message ids.
        notify: sends NOTIFY_CONSUMER_IDS_CHANGED (40) to a group's consumers.
        ha_master: the slaves' server; at a master its port is bound already.
        traffic: the limits for all accepted connections.
        connections: counts them.

    Raises:
        StoreError: if a file under ``config/`` cannot be read.
    """
    clock = runtime.clock
    profile = PROFILES[Profile(config.profile).release]
    added = added_text(config, profile)
    host = address.rpartition(":")[0]
    folder = config.root / _CONFIG_FOLDER
    topics = TopicConfigManager(config, ConfigFile(folder / "topics.json", disk), clock.now_ms)
    groups = SubscriptionGroupManager(
        ConfigFile(folder / "subscriptionGroup.json", disk),
        clock.now_ms,
        auto_create=config.auto_create_subscription_group,
    )
    request_modes = MessageRequestModeManager(
        ConfigFile(folder / "messageRequestMode.json", disk), clock.now_ms
    )
    offsets = ConsumerOffsetTable(folder / "consumerOffset.json", disk)
    topics.on_compacted = store.set_compaction_topics
    for table in (topics, groups, request_modes, offsets):
        table.load()
    offsets.before_save = store.flush
    table_flush = TableFlush(runtime.workers, (topics, groups, request_modes))
    registration = _registration(runtime, config, profile, client, topics, address, ha_master.port)
    topics.on_change = registration.announce
    store.store_host = pack_host(address)
    store.on_log_growth(LogPrefault(runtime.workers, disk).begin)
    stats = BrokerStats(
        clock.now_ms(),
        clock.monotonic(),
        BrokerStatsManager(
            config.broker_cluster_name,
            deletes=(
                profile.deletes_stats
                if config.auto_delete_unused_stats is None
                else config.auto_delete_unused_stats
            ),
            idle_minutes=config.max_stats_idle_time_in_minutes,
            has_added=profile.adds_stats,
            system_topics=profile.system_topics,
        ),
        store.put_counts,
    )
    if runtime.stalls is not None:
        runtime.stalls.on_slow_request = stats.on_slow_request
    long_polling = LongPolling(clock, runtime.timers, store.max_offset)
    sync_flush = None
    if config.store.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        sync_flush = SyncFlush(
            runtime.workers, runtime.timers, store.flush, config.sync_flush_timeout / 1_000
        )
    sync_replica = None
    if config.broker_role is BrokerRole.SYNC_MASTER:
        sync_replica = SyncReplica(ha_master, runtime.timers, config.slave_timeout / 1_000)
    answers = SendAnswers(config, store.store_host)
    appender = MessageAppender(
        store,
        stats,
        long_polling,
        sync_flush,
        sync_replica,
        ends_properties=profile.ends_properties,
        tables_saved=table_flush.saved,
        refused=answers.refused,
    )
    consumers = ConsumerManager(notify, tell_broadcast_on_close=profile.notifies_broadcast_on_close)
    reset_offsets, fencing, fenced_commits = ResetOffsetTable(), Fencing(), FencedCommits()
    reset_notifier = ResetNotifier(config.broker_name)
    rewinds = Rewinds(clock.now_ms, store, consumers, slaves_serve=config.slave_read_enable)
    committer = OffsetCommitter(runtime, offsets, fencing, fenced_commits, consumers, rewinds)
    delay_offsets = DelayOffsets(ConfigFile(folder / "delayOffset.json", disk))
    delay_offsets.load()
    synchronize = SlaveSynchronize(
        client,
        runtime.workers,
        address,
        store,
        runtime.timers,
        topics,
        groups,
        offsets,
        delay_offsets,
        removes_offsets=profile.offsets_go_with_topic,
    )
    suggester = None
    if config.is_slave or config.slave_read_enable:
        suggester = BrokerSuggester(
            config, profile, store, groups, lambda: synchronize.master_address is not None
        )
    keeps_moved = profile.stores_offset_moved and not config.is_slave
    pull_validator = PullValidator(config, profile, topics, groups, consumers, host)
    puller = MessagePuller(
        runtime,
        config,
        store,
        pull_validator,
        ResetRedirector(offsets, reset_offsets, fencing, reset_notifier, consumers),
        rewinds,
        committer,
        long_polling,
        OffsetMovedLog(appender, clock) if keeps_moved else None,
        stats,
        suggester,
        accepts_commits=profile.slave_commits_pulls or not config.is_slave,
    )
    queue_locks = RebalanceLockManager(clock.monotonic)
    send_validator = SendValidator(
        config, profile, topics, groups, runtime.random, host, queue_locks.is_any_held
    )
    delay_levels = DelayLevels(config.store.message_delay_level, clock.scale)
    delay_service = DelayService(
        runtime,
        store,
        appender,
        delay_levels,
        delay_offsets,
        pause=profile.delivery_pause,
        save_seconds=config.flush_delay_offset_interval / 1_000,
    )
    delays = DelayHook(delay_levels, delay_service.expect)
    # RocketMQ's order: a delayed half message goes to the half topic, not to the schedule topic.
    half_messages = HalfMessages(config, profile, topics, host)
    timers = build_timers(runtime, config, disk, store, appender) if profile.knows_timers else None
    timed = () if timers is None else (timers.hook.before_put,)
    hooks = PutMessageHooks([half_messages.before_put, refuse_inner_batch, *timed, delays.before_put])
    producers = ProducerManager()
    retention = Retention(runtime, config, store, ends_idle=profile.exhausted_queue_ends)
    context = BrokerContext(
        config=config,
        profile=profile,
        runtime=runtime,
        traffic=traffic,
        connections=connections,
        store=store,
        topics=topics,
        groups=groups,
        request_modes=request_modes,
        table_flush=table_flush,
        offsets=offsets,
        offset_flush=OffsetFlush(runtime.workers, offsets, runtime.probe),
        reset_offsets=reset_offsets,
        fencing=fencing,
        rewinds=rewinds,
        reset_notifier=reset_notifier,
        reset_announcer=ResetAnnouncer(runtime.timers, long_polling, reset_notifier),
        fenced_commits=fenced_commits,
        consumers=consumers,
        producers=producers,
        queue_locks=queue_locks,
        stats=stats,
        long_polling=long_polling,
        committer=committer,
        answers=answers,
        appender=appender,
        delays=delays,
        timers=timers,
        pop=None
        if timers is None
        else build_pop(
            runtime,
            config,
            profile,
            store,
            topics,
            groups,
            offsets,
            reset_offsets,
            rewinds,
            committer,
            appender,
            timers,
            long_polling,
            stats,
            host,
            ConfigFile(folder / "consumerOrderInfo.json", disk),
        ),
        delay_offsets=delay_offsets,
        retention=retention,
        transaction_ends=TransactionEnds(config, profile, store, appender, clock),
        sender=MessageSender(
            added,
            send_validator,
            appender,
            answers,
            hooks,
            stores_wait=profile.stores_wait,
            unique_ids=_unique_ids(runtime, store.store_host) if profile.adds_unique_key else None,
        ),
        reply_sender=ReplySender(
            config,
            clock,
            producers,
            send_validator,
            PutMessageHooks([*timed, delays.before_put]).before_put,
            appender,
            answers,
            address,
            region_properties(config, profile),
        ),
        batch_sender=BatchSender(
            added_properties(config, profile),
            send_validator,
            appender,
            answers,
            runtime.timers,
            config.store.max_message_size,
            ends=profile.ends_properties,
            names_batch=profile.adds_unique_key,
            limits_records=profile.batch_records_are_limited,
        ),
        puller=puller,
        registration=registration,
        live_config=LiveConfig(config, topics.renew),
        large_responses=LargeResponses(runtime.timers),
        ha_master=ha_master,
    )
    check_parts = CheckParts(
        runtime,
        store,
        appender,
        topics,
        offsets,
        CheckBacks(profile, store, producers),
        timeout_ms=config.transaction_time_out,
        check_max=config.transaction_check_max,
        reserved_ms=config.file_reserved_time * 3_600_000,
        counts_puts=profile.counts_transactions,
    )
    check_interval = config.transaction_check_interval or profile.transaction_check_interval
    checks = TransactionCheckService(check_parts, check_interval / 1_000 if profile.half_topic else None)
    background: tuple[BackgroundService, ...] = (retention, delay_service, checks)
    if timers is not None:
        background += (timers.service,)
    if context.pop is not None:
        background += (context.pop.revive, context.pop.orders)
    if config.is_slave:
        store.become_replica()
        wake = _wake(long_polling) if profile.slave_wakes_pulls else _ignore_arrivals
        synchronize.save_timer_progress = None if timers is None else timers.save_master_progress
        slave = context.slave = Slave(runtime, config, store, synchronize, wake)
        registration.on_master = slave.on_master
        # Only a master delivers delayed messages and checks transactions.
        background = (retention, slave)
    else:
        ha_master.serve(store)
    sends = plain_sends(
        runtime,
        config,
        profile,
        store,
        topics,
        send_validator,
        appender,
        answers,
        long_polling.awaited,
        added,
    )
    pulls = None
    if suggester is None:
        pulls = plain_pulls(
            runtime,
            config,
            store,
            pull_validator,
            groups,
            offsets,
            reset_offsets,
            rewinds,
            committer,
            stats,
        )
    kernels = tuple(kernel for kernel in (*sends, pulls) if kernel is not None)
    background_flush = BackgroundFlush(runtime.workers, store)
    return Services(context, background_flush, sync_flush, sync_replica, background, kernels)


def _unique_ids(runtime: Runtime, store_host: bytes) -> UniqueIdGenerator:
    return UniqueIdGenerator(runtime, str(ip_address(store_host[:-_PORT_BYTES])))


def _wake(long_polling: LongPolling) -> Callable[[Sequence[Arrival]], None]:
    def wake(arrivals: Sequence[Arrival]) -> None:
        for topic, queue_id, max_offset, tags_code, properties in arrivals:
            long_polling.on_arrival(topic, queue_id, max_offset, (tags_code,), (properties,))

    return wake


def _ignore_arrivals(arrivals: Sequence[Arrival]) -> None:
    """Do nothing: the 5 s loop of ``LongPolling`` runs the suspended pulls again."""


def _registration(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    client: RemotingClient,
    topics: TopicConfigManager,
    address: str,
    ha_port: int,
) -> RegistrationService:
    host, _, port = address.rpartition(":")
    identity = BrokerIdentity(
        config.broker_cluster_name,
        config.broker_name,
        config.broker_id,
        address,
        # A slave does not listen on its HA port, but RocketMQ's slaves register one, too.
        f"{host}:{ha_port or config.ha_listen_port or port}",
    )
    return RegistrationService(
        client,
        runtime.timers,
        config.namesrv_addresses,
        identity,
        topics.wrapper,
        topics.mark_ordered,
        period_ms=config.register_name_server_period,
        timeout_seconds=config.register_broker_timeout_mills / 1_000,
        sends_changes=profile.registers_changes,
    )
