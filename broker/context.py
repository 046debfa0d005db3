"""The state and services that the request handlers of a broker share."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.background.registration import RegistrationService
from rewindmq.broker.background.retention import Retention
from rewindmq.broker.clients.consumer_manager import ConsumerManager
from rewindmq.broker.clients.producer_manager import ProducerManager
from rewindmq.broker.clients.queue_locks import RebalanceLockManager
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.delay.hook import DelayHook
from rewindmq.broker.ha.master import HaMaster
from rewindmq.broker.ha.slave import Slave
from rewindmq.broker.live_config import LiveConfig
from rewindmq.broker.offsets.committer import OffsetCommitter
from rewindmq.broker.offsets.delay_offsets import DelayOffsets
from rewindmq.broker.offsets.fencing import FencedCommits, Fencing
from rewindmq.broker.offsets.flush import OffsetFlush
from rewindmq.broker.offsets.reset_offset_table import ResetOffsetTable
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.pop.build import PopConsumption
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.pull.long_polling import LongPolling
from rewindmq.broker.pull.puller import MessagePuller
from rewindmq.broker.pull.reset_announcer import ResetAnnouncer
from rewindmq.broker.pull.reset_notifier import ResetNotifier
from rewindmq.broker.send.answer import SendAnswers
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.batch_sender import BatchSender
from rewindmq.broker.send.reply_sender import ReplySender
from rewindmq.broker.send.sender import MessageSender
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.flush import TableFlush
from rewindmq.broker.tables.message_request_mode import MessageRequestModeManager
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.broker.timer.timers import TimerMessages
from rewindmq.broker.transaction.end import TransactionEnds
from rewindmq.protocol.remoting.accept.limit import ConnectionLimit
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.slices.large_responses import LargeResponses
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic


@dataclass(slots=True)
class BrokerContext:
    """The state, profile and services of one broker, built by ``wiring.wire``."""

    config: BrokerConfig
    profile: BrokerProfile
    runtime: Runtime
    traffic: Traffic
    connections: ConnectionLimit
    store: MessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    request_modes: MessageRequestModeManager
    table_flush: TableFlush
    offsets: ConsumerOffsetTable
    offset_flush: OffsetFlush
    reset_offsets: ResetOffsetTable
    fencing: Fencing
    rewinds: Rewinds
    reset_notifier: ResetNotifier
    reset_announcer: ResetAnnouncer
    fenced_commits: FencedCommits
    consumers: ConsumerManager
    producers: ProducerManager
    queue_locks: RebalanceLockManager
    stats: BrokerStats
    long_polling: LongPolling
    committer: OffsetCommitter
    answers: SendAnswers
    appender: MessageAppender
    delays: DelayHook
    # None in releases without timer messages.
    timers: TimerMessages | None
    # None in releases without POP.
    pop: PopConsumption | None
    delay_offsets: DelayOffsets
    retention: Retention
    transaction_ends: TransactionEnds
    sender: MessageSender
    reply_sender: ReplySender
    batch_sender: BatchSender
    puller: MessagePuller
    registration: RegistrationService
    live_config: LiveConfig
    large_responses: LargeResponses
    # Without connections at a slave.
    ha_master: HaMaster
    # None at a master.
    slave: Slave | None = None
