"""Stores messages again whose invisible time is over (RocketMQ 5.5.1 ``PopReviveService``).

The service reads the queues of the revive topic. A checkpoint comes there one second before its messages are
visible again, an ack at that time; see ``ReviveLog``. Two seconds later, all acks of a checkpoint are there.
Messages that have none are stored in the group's retry topic. The offset of the group
CID_RMQ_SYS_REVIVE_GROUP is that of the last checkpoint that is done. A message that cannot be stored gets a
checkpoint of its own, which comes back later; if that cannot be stored either, its queue waits.

Changed: RocketMQ guesses from the records that it finds how far the timers are; here the timers say it. A
checkpoint that comes long before its time is put back, so that those behind it need not wait. A delayed
message is not delayed again when it is revived. A record that cannot be read is skipped; in RocketMQ, it
stops its queue for ever. The waits of a message that cannot be stored begin when that fails, and a change
with ``suspend`` still counts for it.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.pop.inflight import PopInflightMessageCounter
from rewindmq.broker.pop.long_polling import PopLongPolling
from rewindmq.broker.pop.revive_log import ReviveLog
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.sender import tags_code_of
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.model import StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.broker.timer.timers import TimerMessages
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import (
    FIRST_POP_TIME,
    ORIGIN_GROUP,
    PROPERTY_SEPARATOR,
    TAGS,
    find_property,
    without_properties,
)
from rewindmq.protocol.message.record import RecordError, decode_record
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX
from rewindmq.protocol.pop.records import (
    AckMsg,
    BatchAckMsg,
    PopCheckPoint,
    PopRecordError,
)
from rewindmq.protocol.pop.records import decode_record as decode_pop_record
from rewindmq.protocol.pop.topics import REVIVE_GROUP, normal_topic, pop_retry_topic
from rewindmq.protocol.remoting.runtime import Clock

_log = logging.getLogger(__name__)

# ``ackTimeInterval`` and another second: the least time between a message's visibility and its revival.
_MARGIN_MS: Final = 2_000
# A checkpoint is a second early by its due time; what comes so long before it was not sent by the timers.
_EARLY_MS: Final = 10_000
# ``ckRewriteIntervalsInSeconds``: how long a message waits that could not be stored, at each attempt.
_WAIT_SECONDS: Final = (
    10,
    20,
    30,
    60,
    120,
    180,
    240,
    300,
    360,
    420,
    480,
    540,
    600,
    1_200,
    1_800,
    3_600,
    7_200,
)
# Checkpoints in memory from which on a queue that waits is not read.
_MOST_WAITING: Final = 10_000
# Records that are read, and messages that are revived, in one turn of the event loop: a few ms.
_RECORDS_PER_TURN: Final = 64
_REVIVALS_PER_TURN: Final = 32
_BYTES_PER_TURN: Final = 1 << 20

# Topic, group, queue id, start offset, POP time and broker of a checkpoint.
_Key = tuple[str | None, str | None, int, int, int, str | None]


class ReviveLag(NamedTuple):
    """How far one queue of the revive topic is behind.

    Attributes:
        records: checkpoints and acks that are in the queue and not done.
        milliseconds: since the first of them came into the queue; 0: there is none.
    """

    queue_id: int
    records: int
    milliseconds: int


class _ReviveQueue:
    """One queue of the revive topic.

    Attributes:
        next_offset: of the next record to read.
        read_until: ms; every ack up to this time is read.
        is_waiting: nothing more can be stored at present.
        points: the checkpoints that are read and not done, in the order of their records.
        by_key: the same, for acks.
    """

    __slots__ = ("by_key", "is_waiting", "next_offset", "points", "queue_id", "read_until")

    def __init__(self, queue_id: int, next_offset: int) -> None:
        self.queue_id = queue_id
        self.next_offset = next_offset
        self.read_until = 0
        self.is_waiting = False
        self.points: deque[PopCheckPoint] = deque()
        self.by_key: dict[_Key, PopCheckPoint] = {}


class PopReviveService:
    """Revives messages at a master."""

    def __init__(
        self,
        clock: Clock,
        config: BrokerConfig,
        store: MessageStore,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        offsets: ConsumerOffsetTable,
        appender: MessageAppender,
        timers: TimerMessages,
        revive_log: ReviveLog,
        long_polling: PopLongPolling,
        inflight: PopInflightMessageCounter,
    ) -> None:
        self._now_ms = clock.now_ms
        self._scale = clock.scale
        self._config = config
        self._longest_ms = config.store.timer_max_delay_sec * 1_000
        self._store = store
        self._topics = topics
        self._groups = groups
        self._offsets = offsets
        self._appender = appender
        self._timers = timers
        self._revive_log = revive_log
        self._long_polling = long_polling
        self._inflight = inflight
        self._queues: list[_ReviveQueue] = []
        self._is_failing = False

    # Start and stop

    def begin(self, schedule: Schedule) -> None:
        """See ``BackgroundService``."""
        topic = self._revive_log.topic
        self._queues = [
            _ReviveQueue(queue_id, max(self._offsets.query(REVIVE_GROUP, topic, queue_id), -1) + 1)
            for queue_id in range(self._revive_log.queue_nums)
        ]
        interval = self._config.revive_interval / 1_000
        schedule.every(interval, interval, self._look)

    async def close(self) -> None:
        """Stop; the next start reads the unfinished checkpoints again."""
        self._queues = []

    # State, for statistics

    def behind(self) -> Iterator[ReviveLag]:
        """Return how far each queue of the revive topic is behind; nothing at a slave."""
        topic, store, now_ms = self._revive_log.topic, self._store, self._now_ms()
        for queue in self._queues:
            done = self._done(queue)
            stored_at = store.store_time(topic, queue.queue_id, done)
            records = max(store.max_offset(topic, queue.queue_id) - done, 0)
            yield ReviveLag(queue.queue_id, records, max(now_ms - stored_at, 0) if stored_at >= 0 else 0)

    @property
    def open_check_points(self) -> int:
        """The number of checkpoints in memory, which are nearly due."""
        return sum(len(queue.points) for queue in self._queues)

    def _done(self, queue: _ReviveQueue) -> int:
        return queue.points[0].revive_offset if queue.points else queue.next_offset

    # Reading

    def _look(self) -> Generator[None] | None:
        """Do what is due; called every ``reviveInterval``."""
        topic = self._revive_log.topic
        if any(
            queue.points or queue.next_offset < self._store.max_offset(topic, queue.queue_id)
            for queue in self._queues
        ):
            return self._work()
        return None

    def _work(self) -> Generator[None]:
        # Before the reads: every ack that is due at this time is in its queue.
        until = self._timers.delivered_until
        for queue in tuple(self._queues):
            yield from self._read(queue, until)
            if self._queues:
                yield from self._revive_due(queue)

    def _read(self, queue: _ReviveQueue, until: int) -> Generator[None]:
        """Read all records; they have the acks up to the time ``until``."""
        topic = self._revive_log.topic
        end = self._store.max_offset(topic, queue.queue_id)
        # A crash may have taken the newest records.
        queue.next_offset = min(queue.next_offset, end)
        while queue.next_offset < end:
            if queue.is_waiting and len(queue.points) >= _MOST_WAITING:
                return
            result = self._store.get_message(
                topic, queue.queue_id, queue.next_offset, _RECORDS_PER_TURN, None
            )
            body, at = result.body, 0
            while at < len(body):
                size = int.from_bytes(body[at : at + 4], "big")
                self._take(queue, body[at : at + size])
                at += size
            if result.next_begin_offset == queue.next_offset:
                # The disk fails, or the message is being removed.
                return
            queue.next_offset = result.next_begin_offset
            yield
        queue.read_until = until

    def _take(self, queue: _ReviveQueue, data: bytes) -> None:
        """Take in one record of the revive topic."""
        try:
            message = decode_record(data)
            tag = find_property(message.packed_properties.decode("utf-8", "replace"), TAGS)
            record = decode_pop_record(tag, message.stored_body)
        except (RecordError, PopRecordError) as error:
            _log.error("revive queue %d: a record is skipped: %s", queue.queue_id, error)
            return
        if isinstance(record, PopCheckPoint):
            self._take_check_point(queue, record, message.queue_offset)
        elif record is not None:
            self._take_ack(queue, record)

    def _take_check_point(self, queue: _ReviveQueue, point: PopCheckPoint, offset: int) -> None:
        topic, group = point.topic, point.consumer_group
        diffs = point.offset_diffs
        if topic is None or group is None or point.num <= 0 or (diffs and len(diffs) < point.num):
            return
        # Many checkpoints have the same names.
        point.topic, point.consumer_group = sys.intern(topic), sys.intern(group)
        point.revive_offset, point.bit_map = offset, 0
        queue.points.append(point)
        if queue.by_key.setdefault(_key(point, point.broker_name), point) is not point:
            # After a crash it may come twice: the first one gets the acks, and nothing is left for this one.
            point.bit_map = (1 << point.num) - 1

    def _take_ack(self, queue: _ReviveQueue, ack: AckMsg) -> None:
        point = queue.by_key.get(_key(ack, ack.broker_name or self._config.broker_name))
        if point is None:
            return
        for offset in ack.ack_offsets if isinstance(ack, BatchAckMsg) else (ack.ack_offset,):
            index = point.index_of(offset)
            if index >= 0:
                point.bit_map |= 1 << index

    # Reviving

    def _revive_due(self, queue: _ReviveQueue) -> Generator[None]:
        """Revive what is due and whose acks are read."""
        done = None
        queue.is_waiting = False
        left = _REVIVALS_PER_TURN
        size_left = _BYTES_PER_TURN
        while queue.points:
            point = queue.points[0]
            visible_at = self._revive_log.visible_at(point.pop_time, point.invisible_time)
            if visible_at + _MARGIN_MS > queue.read_until:
                if not self._passes_over(queue, point, visible_at):
                    break
            else:
                for index, offset in enumerate(point.offsets[: point.num]):
                    if point.bit_map >> index & 1:
                        continue
                    if left <= 0 or size_left <= 0:
                        yield
                        if not self._queues:
                            return
                        left, size_left = _REVIVALS_PER_TURN, _BYTES_PER_TURN
                    size = self._revive(point, offset)
                    if size is None:
                        size = 0
                        if not self._put_later(queue, point, offset):
                            self._commit(queue, done)
                            return
                    left -= 1
                    size_left -= size
                    point.bit_map |= 1 << index
            done = point.revive_offset
            queue.points.popleft()
            key = _key(point, point.broker_name)
            if queue.by_key.get(key) is point:
                del queue.by_key[key]
        self._commit(queue, done)

    def _commit(self, queue: _ReviveQueue, done: int | None) -> None:
        if done is not None:
            try:
                self._offsets.commit(REVIVE_GROUP, self._revive_log.topic, queue.queue_id, done)
            except StoreError as error:
                _log.error("revive queue %d: cannot store the offset: %s", queue.queue_id, error)

    def _passes_over(self, queue: _ReviveQueue, point: PopCheckPoint, visible_at: int) -> bool:
        """Put a checkpoint back that came too early; return False if those behind it have to wait for it."""
        if visible_at - self._now_ms() < _EARLY_MS:
            return False
        if point.bit_map:
            # Its acks would be lost. One that came twice has nothing left to revive.
            return point.bit_map == (1 << point.num) - 1
        return self._put(queue, point)

    def _put_later(self, queue: _ReviveQueue, point: PopCheckPoint, offset: int) -> bool:
        """Store a checkpoint of one message that could not be stored (``rePutCK``); return as ``_put``."""
        times = point.times_put_back
        wait_ms = _WAIT_SECONDS[min(times, len(_WAIT_SECONDS) - 1)] * 1_000
        passed_ms = max(round((self._now_ms() - point.pop_time) / self._scale), 0)
        again = PopCheckPoint(
            topic=point.topic,
            consumer_group=point.consumer_group,
            queue_id=point.queue_id,
            start_offset=offset,
            pop_time=point.pop_time,
            invisible_time=passed_ms + min(wait_ms, self._longest_ms),
            broker_name=point.broker_name,
            num=1,
            offset_diffs=[0],
            re_put_times=str(times + 1),
            suspend=point.suspend,
        )
        return self._put(queue, again)

    def _put(self, queue: _ReviveQueue, point: PopCheckPoint) -> bool:
        """Store a checkpoint in its queue; return False if that is refused, so that the queue waits."""
        try:
            self._revive_log.put_check_point(point, queue.queue_id)
        except RequestError as error:
            self._note_failure(error)
            queue.is_waiting = True
            return False
        return True

    def _revive(self, point: PopCheckPoint, offset: int) -> int | None:
        """Store a message in the retry topic.

        Returns:
            The size of the record that was read, 0 if there is none; None if it cannot be stored now.
        """
        topic, group = point.topic, point.consumer_group
        assert topic is not None
        assert group is not None
        if self._topics.find(normal_topic(topic, group)) is None or self._groups.get(group) is None:
            return 0
        message = self._find(topic, point.queue_id, offset)
        if message is None:
            return 0
        v2 = self._config.enable_retry_topic_v2
        retry = topic if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) else pop_retry_topic(topic, group, v2=v2)
        try:
            self._ensure_retry_topic(retry, group)
            self._appender.put_other(_revived(message, point, retry, group, self._store.store_host))
        except RequestError as error:
            if error.code == ResponseCode.MESSAGE_ILLEGAL:
                _log.error(
                    "message at %s@%d, offset %d, is not revived: %s", topic, point.queue_id, offset, error
                )
                return 0
            self._note_failure(error)
            return None
        self._is_failing = False
        self._inflight.remove(topic, group, point.queue_id, point.pop_time)
        self._long_polling.on_retry(normal_topic(topic, group), group, 0)
        return message.store_size

    def _find(self, topic: str, queue_id: int, offset: int) -> MessageExt | None:
        entry = self._store.entry(topic, queue_id, offset) if queue_id >= 0 and offset >= 0 else None
        record = None if entry is None else self._store.look_message(entry[0])
        try:
            return None if record is None else decode_record(record)
        except RecordError:
            return None

    def _ensure_retry_topic(self, retry: str, group: str) -> None:
        """Create the retry topic with the first message, and begin at its first message."""
        if self._topics.find(retry) is not None:
            return
        self._topics.ensure(retry, 1)
        if self._offsets.query(group, retry, 0) < 0:
            try:
                self._offsets.commit(group, retry, 0, 0)
            except StoreError as error:
                raise RequestError(ResponseCode.SYSTEM_ERROR, str(error)) from None

    def _note_failure(self, error: RequestError) -> None:
        if not self._is_failing:
            self._is_failing = True
            _log.error("cannot store a message that is due: %s", error.remark)


def _key(record: PopCheckPoint | AckMsg, broker_name: str | None) -> _Key:
    return (
        record.topic,
        record.consumer_group,
        record.queue_id,
        record.start_offset,
        record.pop_time,
        broker_name,
    )


def _revived(
    message: MessageExt, point: PopCheckPoint, retry: str, group: str, born_host: bytes
) -> StoredMessage:
    """Return the message for the retry topic (``PopReviveService#reviveRetry``)."""
    text = message.packed_properties.decode("utf-8", "replace")
    if message.reconsume_times == 0 or find_property(text, FIRST_POP_TIME) is None:
        text = without_properties(text, (FIRST_POP_TIME,))
        text = _with(text, FIRST_POP_TIME, str(point.pop_time))
    text = _with(without_properties(text, (ORIGIN_GROUP,)), ORIGIN_GROUP, group)
    times = message.reconsume_times + (0 if point.suspend else 1)
    return StoredMessage(
        retry,
        0,
        message.stored_body,
        text.encode(),
        tags_code_of(text),
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        born_host,
        min(times, 0x7FFF_FFFF),
    )


def _with(text: str, name: str, value: str) -> str:
    separator = PROPERTY_SEPARATOR if text and not text.endswith(PROPERTY_SEPARATOR) else ""
    return f"{text}{separator}{name}\x01{value}{PROPERTY_SEPARATOR}"
