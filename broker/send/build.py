"""Builds the appender of messages, and the services of sends over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from rewindmq.broker.background.sync_flush import SyncFlush
from rewindmq.broker.clients.build import Clients
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.ha.sync_replica import SyncReplica
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.send.added_properties import added_properties, added_text, region_properties
from rewindmq.broker.send.answer import SendAnswers
from rewindmq.broker.send.appender import MessageAppender, MessageArrivingListener
from rewindmq.broker.send.batch_sender import BatchSender
from rewindmq.broker.send.plain_sends import PlainSendKernel, plain_sends
from rewindmq.broker.send.put_message_hook import PutMessageHook, PutMessageHooks
from rewindmq.broker.send.reply_sender import ReplySender
from rewindmq.broker.send.sender import MessageSender, refuse_inner_batch
from rewindmq.broker.send.validator import SendValidator
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.build import Tables
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.unique_id import UniqueIdGenerator

# The port in a packed store host follows the address.
_PORT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Sends:
    """Stores the messages of producers.

    Attributes:
        appender: appends messages; the broker's own, too.
        kernels: answer plain sends; none in pure Python.
    """

    appender: MessageAppender
    single: MessageSender
    batches: BatchSender
    replies: ReplySender
    kernels: tuple[PlainSendKernel, ...]


def build_appender(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    stats: BrokerStats,
    tables: Tables,
    arrivals: MessageArrivingListener,
    sync_replica: SyncReplica | None,
) -> MessageAppender:
    """Return the appender, which all parts that store messages share.

    Args:
        arrivals: the suspended pulls.
        sync_replica: None unless sends wait for a slave.
    """
    sync_flush = None
    if config.store.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        timeout_seconds = config.sync_flush_timeout / 1_000
        sync_flush = SyncFlush(runtime.workers, runtime.timers, store.flush, timeout_seconds)
    return MessageAppender(
        store,
        stats,
        arrivals,
        sync_flush,
        sync_replica,
        SendAnswers(config, store.store_host),
        tables.flush,
        ends_properties=profile.ends_properties,
    )


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    appender: MessageAppender,
    tables: Tables,
    clients: Clients,
    half_hook: PutMessageHook,
    timer_hook: PutMessageHook | None,
    delay_hook: PutMessageHook,
    awaited: Mapping[tuple[str, int], object],
    address: str,
) -> Sends:
    """Return the services of sends.

    Args:
        half_hook, timer_hook, delay_hook: store half messages, timer messages and delayed messages elsewhere.
        awaited: the queues on which pulls wait, a view of what they are at any time.
        address: the registered one, ``host:port``.
    """
    host = address.rpartition(":")[0]
    validator = SendValidator(
        config, profile, tables.topics, tables.groups, runtime.random, host, clients.queue_locks.is_any_held
    )
    added = added_text(config, profile)
    # RocketMQ's order: a delayed half message goes to the half topic, not to the schedule topic.
    timed = () if timer_hook is None else (timer_hook,)
    hooks = PutMessageHooks((half_hook, refuse_inner_batch, *timed, delay_hook))
    unique_ids = None
    if profile.adds_unique_key:
        unique_ids = UniqueIdGenerator(runtime, str(ip_address(store.store_host[:-_PORT_BYTES])))
    return Sends(
        appender,
        MessageSender(
            added,
            validator,
            appender,
            hooks,
            stores_wait=profile.stores_wait,
            unique_ids=unique_ids,
        ),
        BatchSender(
            added_properties(config, profile),
            validator,
            appender,
            runtime.timers,
            config.store.max_message_size,
            ends=profile.ends_properties,
            names_batch=profile.adds_unique_key,
            limits_records=profile.batch_records_are_limited,
        ),
        ReplySender(
            config,
            runtime.clock,
            clients.producers,
            validator,
            PutMessageHooks((*timed, delay_hook)).before_put,
            appender,
            address,
            region_properties(config, profile),
        ),
        plain_sends(runtime, config, profile, store, tables.topics, validator, appender, awaited, added),
    )
