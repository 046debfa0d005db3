"""Builds the services of pulls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rewindmq.broker.clients.build import Clients
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.offsets.build import Offsets
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.pull.broker_suggester import BrokerSuggester
from rewindmq.broker.pull.long_polling import LongPolling
from rewindmq.broker.pull.offset_moved import OffsetMovedLog
from rewindmq.broker.pull.plain_pulls import PlainPulls, plain_pulls
from rewindmq.broker.pull.puller import MessagePuller
from rewindmq.broker.pull.reset_notifier import ResetNotifier
from rewindmq.broker.pull.reset_redirector import ResetRedirector
from rewindmq.broker.pull.validator import PullValidator
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.build import Tables
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Pulls:
    """Serves the pulls of consumers.

    Attributes:
        long_polling: the suspended pulls.
        notifier: knows whom to notify of a reset, because he pulled.
        kernels: answer plain pulls; none in pure Python, and where a slave may be suggested.
    """

    puller: MessagePuller
    long_polling: LongPolling
    notifier: ResetNotifier
    kernels: tuple[PlainPulls, ...]

    def on_close(self, connection: Connection) -> None:
        """Drop the suspended pulls of a closed connection, and notify it no longer."""
        self.long_polling.on_close(connection)
        self.notifier.forget(connection)


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    stats: BrokerStats,
    tables: Tables,
    clients: Clients,
    offsets: Offsets,
    appender: MessageAppender,
    long_polling: LongPolling,
    has_master: Callable[[], bool],
    host: str,
) -> Pulls:
    """Return the services of pulls.

    Args:
        appender: stores the events of offsets that moved.
        has_master: see ``BrokerSuggester``.
        host: the broker's registered host, for remarks.
    """
    suggester = None
    if config.is_slave or config.slave_read_enable:
        suggester = BrokerSuggester(config, profile, store, tables.groups, has_master)
    keeps_moved = profile.stores_offset_moved and not config.is_slave
    validator = PullValidator(config, profile, tables.topics, tables.groups, clients.consumers, host)
    notifier = ResetNotifier(config.broker_name)
    puller = MessagePuller(
        runtime,
        config,
        store,
        validator,
        ResetRedirector(offsets.table, offsets.marks, offsets.fencing, notifier, clients.consumers),
        offsets.rewinds,
        offsets.committer,
        long_polling,
        OffsetMovedLog(appender, runtime.clock) if keeps_moved else None,
        stats,
        suggester,
        accepts_commits=profile.slave_commits_pulls or not config.is_slave,
    )
    kernels: tuple[PlainPulls, ...] = ()
    if suggester is None:
        kernels = plain_pulls(runtime, config, store, validator, tables.groups, offsets, stats)
    return Pulls(puller, long_polling, notifier, kernels)
