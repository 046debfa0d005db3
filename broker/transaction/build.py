"""Builds transactions: half messages, their ends, and their checks."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.clients.build import Clients
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.offsets.build import Offsets
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.build import Tables
from rewindmq.broker.transaction.check import CheckParts
from rewindmq.broker.transaction.check_back import CheckBacks
from rewindmq.broker.transaction.check_service import TransactionCheckService
from rewindmq.broker.transaction.end import TransactionEnds
from rewindmq.broker.transaction.half import HalfMessages
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Transactions:
    """Transactional messages.

    Attributes:
        half: the put-message hook that stores them first.
        ends: commits them, or rolls them back.
        checks: asks producers for their states at a master.
    """

    half: HalfMessages
    ends: TransactionEnds
    checks: TransactionCheckService


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    appender: MessageAppender,
    tables: Tables,
    offsets: Offsets,
    clients: Clients,
    host: str,
) -> Transactions:
    """Return the parts; a master's ``Background`` begins the checks.

    Args:
        host: the broker's registered host, for remarks.
    """
    parts = CheckParts(
        runtime,
        store,
        appender,
        tables.topics,
        offsets.table,
        CheckBacks(profile, store, clients.producers),
        timeout_ms=config.transaction_time_out,
        check_max=config.transaction_check_max,
        reserved_ms=config.file_reserved_time * 3_600_000,
        counts_puts=profile.counts_transactions,
    )
    interval = config.transaction_check_interval or profile.transaction_check_interval
    return Transactions(
        HalfMessages(config, profile, tables.topics, host),
        TransactionEnds(config, profile, store, appender, runtime.clock),
        TransactionCheckService(parts, interval / 1_000 if profile.half_topic else None),
    )
