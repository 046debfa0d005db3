"""Serves POPs: lends the group's next messages for an invisible time (RocketMQ 5.5.1
``PopMessageProcessor``).

A POP reads from the queues of a topic, and of the group's retry topic. For each queue it stores a checkpoint,
then it moves the group's offset past the messages. ``PopReviveService`` stores messages again that are not
acknowledged.

Changed: RocketMQ moves the offset up to 5 ms later, and a reset in between can be lost (P1b); here both is
one step. If a checkpoint or the first offset cannot be stored, the messages of the queue are not delivered.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.filter.property_filter import PropertyFilter
from rewindmq.broker.offsets.committer import OffsetCommitter
from rewindmq.broker.offsets.reset_offset_table import ResetOffsetTable
from rewindmq.broker.offsets.rewinds import Rewinds
from rewindmq.broker.pop.inflight import PopInflightMessageCounter
from rewindmq.broker.pop.long_polling import PollingResult, PopLongPolling, SuspendedPop
from rewindmq.broker.pop.orderly.queue_level_consumer_manager import QueueLevelConsumerManager
from rewindmq.broker.pop.queues_in_turn import queues_in_turn
from rewindmq.broker.pop.retry_records import queue_offsets_in, under_topic
from rewindmq.broker.pop.revive_log import ReviveLog
from rewindmq.broker.pop.validator import PopValidator
from rewindmq.broker.pull.long_polling import MessageFilter
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.store.model import GetMessageStatus, GetResult
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.pop import PopMessageRequestHeader, PopMessageResponseHeader
from rewindmq.protocol.limits import MAX_RESPONSE_BODY_BYTES
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX
from rewindmq.protocol.points import Point
from rewindmq.protocol.pop.offset_info import BETWEEN_ENTRIES, msg_offset_entry, start_offset_entry
from rewindmq.protocol.pop.records import PopCheckPoint
from rewindmq.protocol.pop.topics import POP_ORDER_REVIVE_QUEUE, pop_retry_topic, topic_type
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.dispatch import failure
from rewindmq.protocol.remoting.runtime import Runtime

# ``ConsumeInitMode``.
INIT_MIN: Final = 0
# A POP that arrives this long after its poll time gets no messages.
_LATE_MS: Final = 500
# Room for one more message, so that a response never exceeds a frame.
_FULL_BYTES: Final = MAX_RESPONSE_BODY_BYTES // 2
_FOUND: Final = GetMessageStatus.FOUND.name
_NOT_FOUND: Final = GetMessageStatus.NO_MESSAGE_IN_QUEUE.name
_POLLING_CODES: Final = {
    PollingResult.POLLING_FULL: ResponseCode.POLLING_FULL,
    PollingResult.POLLING_TIMEOUT: ResponseCode.POLLING_TIMEOUT,
    PollingResult.NOT_POLLING: ResponseCode.POLLING_TIMEOUT,
}
# With these statuses the stored offset is wrong, and the read continues from the right one.
_WRONG_OFFSET: Final = (
    GetMessageStatus.OFFSET_TOO_SMALL,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY,
    GetMessageStatus.OFFSET_FOUND_NULL,
)
# With these statuses the group passes over entries without messages for it.
_PASSED_OVER: Final = (
    GetMessageStatus.NO_MATCHED_MESSAGE,
    GetMessageStatus.OFFSET_FOUND_NULL,
    GetMessageStatus.MESSAGE_WAS_REMOVING,
    GetMessageStatus.NO_MATCHED_LOGIC_QUEUE,
)


class _Popped:
    """What one POP has found so far.

    Attributes:
        rest: about how many messages are left.
        has_moved: an offset has moved, so that the next POP does not find the same.
        refusal: why the messages of a queue are not delivered.
    """

    __slots__ = (
        "bodies",
        "connection",
        "count",
        "has_moved",
        "header",
        "msg_offsets",
        "order_counts",
        "pop_time",
        "refusal",
        "rest",
        "revive_queue_id",
        "size",
        "start_offsets",
        "wanted",
    )

    def __init__(
        self,
        connection: Connection,
        header: PopMessageRequestHeader,
        wanted: MessageFilter,
        pop_time: int,
        revive_queue_id: int,
    ) -> None:
        self.connection = connection
        self.header = header
        self.wanted = wanted
        self.pop_time = pop_time
        self.revive_queue_id = revive_queue_id
        self.bodies: list[bytes] = []
        self.count = self.size = self.rest = 0
        self.start_offsets: list[str] = []
        self.msg_offsets: list[str] = []
        self.order_counts: list[str] = []
        self.has_moved = False
        self.refusal: RequestError | None = None

    @property
    def is_full(self) -> bool:
        return self.count >= self.header.max_msg_nums or self.size >= _FULL_BYTES

    def response(self, code: ResponseCode) -> RemotingCommand:
        header = self.header
        answer = PopMessageResponseHeader(
            self.pop_time,
            header.invisible_time,
            self.revive_queue_id,
            self.rest,
            BETWEEN_ENTRIES.join(self.start_offsets),
            BETWEEN_ENTRIES.join(self.msg_offsets),
            BETWEEN_ENTRIES.join(self.order_counts) if header.order else None,
        )
        if code is not ResponseCode.SUCCESS:
            return RemotingCommand(code, answer, remark=_NOT_FOUND)
        bodies = self.bodies
        body = bodies[0] if len(bodies) == 1 else b"".join(bodies)
        return RemotingCommand(code, answer, body, remark=_FOUND)


class MessagePopper:
    """Runs POPs; suspends a POP that may wait, and runs it again when it is woken."""

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        store: MessageStore,
        validator: PopValidator,
        topics: TopicConfigManager,
        offsets: ConsumerOffsetTable,
        reset_offsets: ResetOffsetTable,
        rewinds: Rewinds,
        committer: OffsetCommitter,
        revive_log: ReviveLog,
        long_polling: PopLongPolling,
        inflight: PopInflightMessageCounter,
        stats: BrokerStats,
        orders: QueueLevelConsumerManager,
    ) -> None:
        self._now_ms = runtime.clock.now_ms
        self._scale = runtime.clock.scale
        self._random = runtime.random
        self._probe = runtime.probe
        self._config = config
        self._broker_name = config.broker_name
        self._store = store
        self._validator = validator
        self._topics = topics
        self._query = offsets.query
        self._reset_offsets = reset_offsets
        self._rewinds = rewinds
        self._commit = committer.commit_popped
        self._revive_log = revive_log
        self._long_polling = long_polling
        self._inflight = inflight
        self._stats = stats
        self._pulls = stats.items.pulls
        self._orders = orders
        self._last_pop_time = 0

    def pop(
        self, connection: Connection, request: RemotingCommand, header: PopMessageRequestHeader
    ) -> RemotingCommand | None:
        """Return the response, or None if the POP is suspended.

        Args:
            header: ``born_time`` is set.

        Raises:
            RequestError: POLLING_TIMEOUT (210), the POP arrives too late; see ``PopValidator``;
                SERVICE_NOT_AVAILABLE (14) or another code of a put, the checkpoint cannot be stored.
        """
        validator = self._validator
        if (self._now_ms() - header.born_time) / self._scale - header.poll_time > _LATE_MS:
            raise validator.timed_out()
        validator.check_readable("pop message")
        validator.check_count(header.max_msg_nums)
        validator.check_master()
        topic = validator.admit(
            header.topic, header.consumer_group, header.queue_id, connection.remote_address
        )
        wanted = validator.filter_of(header.exp, header.exp_type)
        popped = self._pop(connection, header, topic, wanted)
        if popped.bodies:
            if popped.rest > 0:
                self._wake_next(header)
            return popped.response(ResponseCode.SUCCESS)
        if popped.refusal is not None:
            raise popped.refusal
        result = self._long_polling.suspend(connection, request, header, wanted, self._run_again)
        if result is PollingResult.POLLING_SUC:
            # A filter has passed over many messages, and more are left.
            if popped.rest > 0 and popped.has_moved:
                self._wake_next(header)
            return None
        return popped.response(_POLLING_CODES[result])

    def _wake_next(self, header: PopMessageRequestHeader) -> None:
        self._long_polling.wake(header.topic, header.consumer_group, header.queue_id)

    def _run_again(self, pop: SuspendedPop) -> None:
        header = pop.header
        assert isinstance(header, PopMessageRequestHeader)
        try:
            response = self.pop(pop.connection, pop.request, header)
        except Exception as error:
            response = failure(pop.request, error)
            self._wake_next(header)
        if response is not None:
            pop.connection.reply(pop.request, response)

    # Reading

    def _pop(
        self,
        connection: Connection,
        header: PopMessageRequestHeader,
        topic: TopicConfig,
        wanted: MessageFilter,
    ) -> _Popped:
        config = self._config
        chance = self._random.randrange(100)
        order = bool(header.order)
        revive_queue_id = POP_ORDER_REVIVE_QUEUE if order else self._revive_log.next_queue()
        popped = _Popped(connection, header, wanted, self._pop_time(), revive_queue_id)
        retry = None if order else self._retry_topic(header, chance)
        retry_first = chance < config.pop_from_retry_probability
        if retry is not None and retry_first:
            self._pop_from(popped, retry, chance)
        if header.queue_id < 0:
            self._pop_from(popped, topic, chance)
        else:
            self._pop_from_queue(popped, topic.topic_name, header.queue_id)
        if retry is not None and not retry_first and not popped.is_full:
            self._pop_from(popped, retry, chance)
        if not popped.count:
            self._stats.missed_total += 1
        return popped

    def _pop_time(self) -> int:
        """Return the time of this POP, in ms.

        After a reset, a POP may begin at the same offset as an earlier one. Their checkpoints differ by their
        times only.
        """
        now = max(self._now_ms(), self._orders.last_cleared + 1)
        if self._reset_offsets:
            now = max(now, self._last_pop_time + 1)
        self._last_pop_time = max(now, self._last_pop_time)
        return now

    def _retry_topic(self, header: PopMessageRequestHeader, chance: int) -> TopicConfig | None:
        config = self._config
        v2 = config.enable_retry_topic_v2
        if v2 and config.retrieve_message_from_pop_retry_topic_v1 and chance % 2 == 0:
            v2 = False
        return self._topics.find(pop_retry_topic(header.topic, header.consumer_group, v2=v2))

    def _pop_from(self, popped: _Popped, topic: TopicConfig, first: int) -> None:
        name, count = topic.topic_name, topic.read_queue_nums
        for queue_id in queues_in_turn(name, count, first, self._store, self._random):
            self._pop_from_queue(popped, name, queue_id)

    def _pop_from_queue(self, popped: _Popped, topic: str, queue_id: int) -> None:
        header, store = popped.header, self._store
        group = header.consumer_group
        try:
            offset = self._pop_offset(popped, topic, queue_id)
        except RequestError as error:
            # The messages of other queues may be lent already.
            popped.refusal = error
            return
        end = store.max_offset(topic, queue_id)
        if header.order:
            if self._orders.is_blocked(header.attempt_id, topic, group, queue_id, header.invisible_time):
                return
            self._inflight.clear_queue(topic, group, queue_id)
        if offset == end:
            return
        if popped.is_full or self._is_over_threshold(topic, group, queue_id):
            popped.rest += end - offset
            return
        result = self._read(popped, topic, queue_id, offset)
        if result.status in _WRONG_OFFSET:
            self._move(popped, topic, queue_id, offset, result.next_begin_offset)
            result = self._read(popped, topic, queue_id, result.next_begin_offset)
        if result.message_count:
            if not self._lend(popped, topic, queue_id, offset, result):
                popped.rest += result.max_offset - offset
                return
        elif result.status in _PASSED_OVER:
            self._move(popped, topic, queue_id, offset, result.next_begin_offset)
        popped.rest += result.max_offset - result.next_begin_offset

    def _is_over_threshold(self, topic: str, group: str, queue_id: int) -> bool:
        config = self._config
        return (
            config.enable_pop_message_threshold
            and self._inflight.count(topic, group, queue_id) > config.pop_inflight_message_threshold
        )

    def _read(self, popped: _Popped, topic: str, queue_id: int, offset: int) -> GetResult:
        count = popped.header.max_msg_nums - popped.count
        wanted = popped.wanted
        if isinstance(wanted, PropertyFilter):
            return self._store.get_message(topic, queue_id, offset, count, None, wanted.scan())
        return self._store.get_message(topic, queue_id, offset, count, wanted)

    def _lend(self, popped: _Popped, topic: str, queue_id: int, offset: int, result: GetResult) -> bool:
        """Store the checkpoint of what was read, and move the offset; return False if that is refused."""
        header = popped.header
        group, invisible_time, pop_time = header.consumer_group, header.invisible_time, popped.pop_time
        count, body = result.message_count, result.body
        if result.next_begin_offset - offset == count:
            msg_offsets = list(range(offset, result.next_begin_offset))
        else:
            msg_offsets = queue_offsets_in(body)
        if header.order:
            try:
                popped.order_counts += self._orders.update(
                    header.attempt_id, topic, group, queue_id, pop_time, invisible_time, msg_offsets
                )
            except RequestError as error:
                popped.refusal = error
                return False
            self._move(popped, topic, queue_id, offset, offset)
        else:
            point = PopCheckPoint(
                topic=topic,
                consumer_group=group,
                queue_id=queue_id,
                start_offset=offset,
                pop_time=pop_time,
                invisible_time=invisible_time,
                broker_name=self._broker_name,
                num=count,
                offset_diffs=[each - offset for each in msg_offsets],
            )
            try:
                self._revive_log.put_check_point(point, popped.revive_queue_id)
            except RequestError as error:
                popped.refusal = error
                return False
            self._stats.items.count_check_point(topic, group)
            self._move(popped, topic, queue_id, offset, result.next_begin_offset)
        kind = topic_type(topic)
        popped.start_offsets.append(start_offset_entry(kind, queue_id, offset))
        popped.msg_offsets.append(msg_offset_entry(kind, queue_id, msg_offsets))
        popped.count += count
        popped.size += len(body)
        self._pulls.count(topic, group, queue_id, count, len(body))
        self._inflight.add(topic, group, queue_id, count)
        if topic != header.topic and not self._config.pop_response_return_actual_retry_topic:
            body = under_topic(
                body,
                header.topic,
                offset,
                pop_time,
                invisible_time,
                popped.revive_queue_id,
                self._broker_name,
            )
        popped.bodies.append(body)
        return True

    # Offsets

    def _pop_offset(self, popped: _Popped, topic: str, queue_id: int) -> int:
        """Return where the group's next POP of the queue begins; take the mark of a reset."""
        header = popped.header
        group = header.consumer_group
        offset = self._query(group, topic, queue_id)
        if offset < 0:
            offset = self._initial_offset(topic, queue_id, header.init_mode)
            self._commit(popped.connection, group, topic, queue_id, offset)
        if self._reset_offsets:
            mark = self._reset_offsets.collect(group, topic, queue_id)
            if mark is not None:
                self._orders.clear_block(topic, group, queue_id)
                self._commit(popped.connection, group, topic, queue_id, mark)
                if self._probe is not None:
                    details = {
                        "client": popped.connection.remote_address,
                        "group": group,
                        "topic": topic,
                        "queue_id": queue_id,
                        "offset": mark,
                    }
                    self._probe(Point.MARK_COLLECTED, details)
                return mark
        return offset

    def _initial_offset(self, topic: str, queue_id: int, init_mode: int) -> int:
        """Return where a group begins that has no offset (``PopMessageProcessor#getInitOffset``)."""
        store = self._store
        first = store.min_offset(topic, queue_id)
        if init_mode == INIT_MIN or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return first
        end = store.max_offset(topic, queue_id)
        takes_all = self._config.init_pop_offset_by_check_msg_in_mem and first <= 0 < end
        if takes_all and not store.is_cold(topic, queue_id, 0):
            return 0
        # The last message comes once more, as in RocketMQ.
        return max(end - 1, 0)

    def _move(self, popped: _Popped, topic: str, queue_id: int, offset: int, next_offset: int) -> None:
        """Store the group's next offset; tell the queue's rewind, if there is one, what was handed out."""
        group, connection = popped.header.consumer_group, popped.connection
        if self._rewinds.open and (group, topic, queue_id) in self._rewinds.open:
            self._rewinds.on_pull(
                connection,
                (group, topic, queue_id),
                offset,
                next_offset,
                is_moved=False,
                was_suspended=False,
            )
        if next_offset != offset:
            popped.has_moved = True
        self._commit(connection, group, topic, queue_id, next_offset)
