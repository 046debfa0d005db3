"""What the handlers of one broker work on."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.batch_send import BatchSender
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.consumer_manager import ConsumerManager
from rewindmq.broker.delay.diversion import DelayDiversion
from rewindmq.broker.delay.offsets import DelayOffsets
from rewindmq.broker.fenced_commits import FencedCommits
from rewindmq.broker.fencing import Fencing
from rewindmq.broker.live_config import LiveConfig
from rewindmq.broker.long_polling import LongPolling
from rewindmq.broker.offset_commit import OffsetCommitter
from rewindmq.broker.offset_flush import OffsetFlush
from rewindmq.broker.producer_manager import ProducerManager
from rewindmq.broker.pull import MessagePuller
from rewindmq.broker.put import MessagePutter
from rewindmq.broker.queue_locks import QueueLocks
from rewindmq.broker.registration import Registration
from rewindmq.broker.reset_marks import ResetMarks
from rewindmq.broker.reset_notices import ResetNotices
from rewindmq.broker.retention import Retention
from rewindmq.broker.rules import BrokerRules
from rewindmq.broker.send import MessageSender
from rewindmq.broker.send_answer import SendAnswers
from rewindmq.broker.stats import BrokerStats
from rewindmq.broker.store.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.subscription_group import SubscriptionGroupManager
from rewindmq.broker.topic_config import TopicConfigManager
from rewindmq.broker.transaction.end import TransactionEnds
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(slots=True)
class BrokerContext:
    """The state and rules of one broker, wired by ``wiring.wire``."""

    config: BrokerConfig
    rules: BrokerRules
    runtime: Runtime
    store: MessageStore
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetTable
    offset_flush: OffsetFlush
    marks: ResetMarks
    fencing: Fencing
    reset_notices: ResetNotices
    fenced_commits: FencedCommits
    consumers: ConsumerManager
    producers: ProducerManager
    queue_locks: QueueLocks
    stats: BrokerStats
    long_polling: LongPolling
    committer: OffsetCommitter
    answers: SendAnswers
    putter: MessagePutter
    delays: DelayDiversion
    delay_offsets: DelayOffsets
    retention: Retention
    transaction_ends: TransactionEnds
    sender: MessageSender
    batch_sender: BatchSender
    puller: MessagePuller
    registration: Registration
    live_config: LiveConfig
