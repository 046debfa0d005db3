"""Builds the parts of POP consumption, and keeps them together."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.offsets.build import Offsets
from rewindmq.broker.pop.acknowledger import MessageAcknowledger
from rewindmq.broker.pop.born_times import BornTimes
from rewindmq.broker.pop.inflight import PopInflightMessageCounter
from rewindmq.broker.pop.long_polling import PopLongPolling
from rewindmq.broker.pop.orderly.queue_level_consumer_manager import QueueLevelConsumerManager
from rewindmq.broker.pop.peeker import MessagePeeker
from rewindmq.broker.pop.popper import MessagePopper
from rewindmq.broker.pop.revive import PopReviveService
from rewindmq.broker.pop.revive_log import ReviveLog
from rewindmq.broker.pop.validator import PopValidator
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.pull.long_polling import LongPolling
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.build import Tables
from rewindmq.broker.timer.timers import TimerMessages
from rewindmq.protocol.pop.topics import ALL_QUEUES, revive_topic
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class PopConsumption:
    """The parts of POP consumption that the rest of the broker uses.

    Attributes:
        popper: serves POP_MESSAGE.
        acknowledger: serves acks and changes of invisible times.
        peeker: serves PEEK_MESSAGE, NOTIFICATION and POLLING_INFO.
        revive: stores messages again; runs at a master only.
        long_polling: suspended POPs and NOTIFICATIONs.
        inflight: counts the messages in flight.
        orders: keep the order of queues; saved at a master only.
        born_times: translates the times in requests.
    """

    popper: MessagePopper
    acknowledger: MessageAcknowledger
    peeker: MessagePeeker
    revive: PopReviveService
    long_polling: PopLongPolling
    inflight: PopInflightMessageCounter
    orders: QueueLevelConsumerManager
    born_times: BornTimes

    def runtime_info(self) -> dict[str, str]:
        """Return RewindMQ's own fields of GET_BROKER_RUNTIME_INFO (28)."""
        return {
            f"popRevive_{lag.queue_id}": f"{lag.records},{lag.milliseconds}" for lag in self.revive.behind()
        }

    def on_close(self, connection: Connection) -> None:
        """Drop the requests of a closed connection."""
        self.long_polling.on_close(connection)

    def on_deleted(self, *, topic: str | None = None, group: str | None = None) -> None:
        """Forget what is known of a topic or of a group."""
        self.inflight.clear(topic=topic, group=group)
        self.orders.remove(topic=topic, group=group)

    def close(self) -> None:
        """Drop all suspended requests; the connections are about to close."""
        self.long_polling.close()


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    disk: Disk,
    store: MessageStore,
    tables: Tables,
    offsets: Offsets,
    appender: MessageAppender,
    timers: TimerMessages,
    pulls: LongPolling,
    stats: BrokerStats,
    host: str,
) -> PopConsumption:
    """Connect the parts; nothing runs yet.

    Args:
        pulls: the suspended pulls, which announce messages.
        host: the broker's registered host, for remarks.
    """
    clock, topics, groups = runtime.clock, tables.topics, tables.groups
    validator = PopValidator(config, profile, topics, groups, host)
    revive_log = ReviveLog(
        clock, timers, revive_topic(config.broker_cluster_name), config.revive_queue_num, store.store_host
    )
    inflight = PopInflightMessageCounter(clock.now_ms())

    def queue_nums(topic: str) -> int:
        found = topics.find(topic)
        return 0 if found is None else found.read_queue_nums

    long_polling = PopLongPolling(
        clock,
        runtime.timers,
        pulls,
        queue_nums,
        per_queue=config.pop_polling_size,
        most=config.max_pop_polling_size,
    )

    def wake(topic: str, group: str, queue_id: int) -> None:
        long_polling.wake(topic, group, ALL_QUEUES)
        long_polling.wake(topic, group, queue_id)

    order_file = ConfigFile(config.table_folder / "consumerOrderInfo.json", disk)
    orders = QueueLevelConsumerManager(runtime, order_file, topics, groups, offsets.table.epoch, wake)
    orders.load()
    return PopConsumption(
        popper=MessagePopper(
            runtime,
            config,
            store,
            validator,
            topics,
            offsets.table,
            offsets.marks,
            offsets.rewinds,
            offsets.committer,
            revive_log,
            long_polling,
            inflight,
            stats,
            orders,
        ),
        acknowledger=MessageAcknowledger(
            clock,
            config,
            store,
            validator,
            groups,
            offsets.table,
            offsets.marks,
            offsets.committer,
            revive_log,
            long_polling,
            inflight,
            stats,
            orders,
        ),
        peeker=MessagePeeker(
            runtime, config, store, validator, topics, offsets.table, long_polling, stats, orders
        ),
        revive=PopReviveService(
            clock,
            config,
            store,
            topics,
            groups,
            offsets.table,
            appender,
            timers,
            revive_log,
            long_polling,
            inflight,
        ),
        long_polling=long_polling,
        inflight=inflight,
        orders=orders,
        born_times=BornTimes(clock),
    )
