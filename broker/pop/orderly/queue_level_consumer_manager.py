"""Keeps the order infos of orderly POPs: in memory, in ``config/consumerOrderInfo.json``, and clean.

Source: RocketMQ 5.5.1 ``QueueLevelConsumerManager``, ``BrokerController`` (saved every 10 s and at a stop).
Changed: the file is written only after a change. A waiting request is woken when the last open message of a
queue is visible again; 5.5.1 wakes it for the first one only, and it then waits for its own end (seen). So
that no late ack undoes a fenced reset, a queue with an epoch commits only what was popped from it since the
reset and since the broker's start; messages in flight before come again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.limits import QUEUES_PER_SLICE
from rewindmq.broker.pop.orderly import order_info_file
from rewindmq.broker.pop.orderly.lock_free_times import LockFreeTimes
from rewindmq.broker.pop.orderly.order_info_table import (
    OrderInfoTable,
    OrderKey,
    order_counts,
    order_key,
    topic_and_group,
)
from rewindmq.broker.pop.orderly.queue_order import NOTHING_TO_COMMIT, OrderInfo
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.remoting.runtime import Runtime

_log = logging.getLogger(__name__)

SAVE_SECONDS: Final = 10.0
# Queues from which nothing was popped for so long are forgotten.
_KEPT_MS: Final = 24 * 3_600_000


class QueueLevelConsumerManager:
    """The order infos of one broker.

    Attributes:
        last_cleared: the latest POP time of the queues that were reset, in ms.

    Args:
        epoch: returns the epoch of a group, topic and queue, which fenced resets raise.
        on_free: called with topic, group and queue when a blocked queue may be popped again.
    """

    def __init__(
        self,
        runtime: Runtime,
        file: ConfigFile,
        topics: TopicConfigManager,
        groups: SubscriptionGroupManager,
        epoch: Callable[[str, str, int], int],
        on_free: Callable[[str, str, int], None],
    ) -> None:
        self._clock = runtime.clock
        self._workers = runtime.workers
        self._file = file
        self._topics = topics
        self._groups = groups
        self._epoch = epoch
        self._on_free = on_free
        self._table = OrderInfoTable()
        self._lock_free = LockFreeTimes(runtime.clock, runtime.timers, self._free)
        self._saving: asyncio.Future[None] | None = None
        self.last_cleared = 0

    def __len__(self) -> int:
        return len(self._table)

    def text(self) -> str:
        """Return what the file would have now."""
        return order_info_file.text(self._table.copy())

    # Start and stop.

    def load(self) -> None:
        """Read the file. Without a readable one, messages in flight are delivered again."""
        try:
            infos = self._file.load(order_info_file.parse)
        except StoreError as error:
            _log.error(
                "no order infos of POP: %s; messages that consumers have in flight are delivered again", error
            )
            return
        if infos is not None:
            infos = {key: info for key, info in infos.items() if not self._is_fenced(key)}
            self._table.replace_all(infos)
            ends = {key: end for key, info in infos.items() if (end := info.end_ms) is not None}
            self._lock_free.load(ends)

    def begin(self, schedule: Schedule) -> None:
        """See ``BackgroundService``."""
        schedule.every(SAVE_SECONDS, SAVE_SECONDS, self._clean_and_save)
        schedule.when_clock_changes(self._look)

    async def close(self) -> None:
        """Stop the timer and save."""
        self._lock_free.close()
        if self._saving is not None:
            await asyncio.wait((self._saving,))
        for _ in self._clean():
            pass
        if self._table.is_changed:
            try:
                await self._workers.run(self._write, self._table.copy())
            except StoreError as error:
                _log.error("can not save order infos, messages in flight will come again: %s", error)

    # Events.

    def is_blocked(
        self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_time: int
    ) -> bool:
        """Return True if the group may not pop the queue now.

        Args:
            attempt_id: of the POP; one that repeats the last POP's id is not blocked by it. None for no POP.
            topic: the real topic.
            invisible_time: ms, of this POP.
        """
        key = order_key(topic, group, queue_id)
        return self._table.is_blocked(key, attempt_id, self._scaled(invisible_time), self._clock.now_ms())

    def update(
        self,
        attempt_id: str | None,
        topic: str,
        group: str,
        queue_id: int,
        pop_time: int,
        invisible_time: int,
        offsets: Sequence[int],
    ) -> list[str]:
        """Note the messages of a POP; return the queue's entries of ``orderCountInfo``.

        Raises:
            RequestError: SYSTEM_ERROR (1), the attempt id is too long, or there are too many queues.
        """
        key = order_key(topic, group, queue_id)
        now = self._clock.now_ms()
        wait = self._scaled(invisible_time)
        info = self._table.update(key, attempt_id, pop_time, wait, offsets, now)
        self._lock_free.put(key, info.end_ms)
        return order_counts(info, key)

    def commit_and_next(self, topic: str, group: str, queue_id: int, offset: int, pop_time: int) -> int:
        """Note an ack; return the offset to commit, ``ILLEGAL_OFFSET`` or ``NOTHING_TO_COMMIT``.

        Returns:
            Of a queue without an order info: one past the message; ``NOTHING_TO_COMMIT`` if it has an epoch.
        """
        key = order_key(topic, group, queue_id)
        if self._table.get(key) is None and self._is_fenced(key):
            return NOTHING_TO_COMMIT
        next_offset = self._table.acknowledge(key, offset, pop_time)
        self._changed(key)
        return next_offset

    def update_next_visible_time(
        self, topic: str, group: str, queue_id: int, offset: int, pop_time: int, visible_at: int
    ) -> None:
        """Set when a message in flight is visible again, in ms since 1970; any other message is ignored."""
        key = order_key(topic, group, queue_id)
        self._table.change_visible_time(key, offset, pop_time, visible_at)
        self._changed(key)

    def clear_block(self, topic: str, group: str, queue_id: int) -> None:
        """Forget what is in flight, because the queue was reset."""
        key = order_key(topic, group, queue_id)
        info = self._table.get(key)
        if info is not None:
            self.last_cleared = max(self.last_cleared, info.pop_time)
        self._table.remove(key)
        self._lock_free.put(key, None)

    def remove(self, *, topic: str | None = None, group: str | None = None) -> None:
        """Forget the queues of a topic or of a group that is deleted."""
        if topic is None and group is None:
            return
        for key in self._table.remove_all(topic, group):
            self._lock_free.put(key, None)

    def _scaled(self, invisible_time: int) -> int:
        """Return an invisible time as it passes on the wall clock."""
        scale = self._clock.scale
        return invisible_time if scale == 1.0 else round(invisible_time * scale)

    def _is_fenced(self, key: OrderKey) -> bool:
        names = topic_and_group(key)
        return names is not None and self._epoch(names[1], names[0], key[1]) > 0

    def _changed(self, key: OrderKey) -> None:
        info = self._table.get(key)
        self._lock_free.put(key, None if info is None else info.end_ms)

    def _free(self, key: OrderKey) -> None:
        names = topic_and_group(key)
        if names is not None:
            self._on_free(*names, key[1])

    def _look(self, moved_ms: int) -> None:
        self._lock_free.look()

    # Cleaning and saving.

    def _clean_and_save(self) -> Iterator[None]:
        yield from self._clean()
        if self._table.is_changed and self._saving is None:
            self._table.is_changed = False
            self._saving = asyncio.ensure_future(self._workers.run(self._write, self._table.copy()))
            self._saving.add_done_callback(self._saved)

    def _clean(self) -> Iterator[None]:
        """Forget queues that are gone or not in use: one step for some of them."""
        keys = iter(list(self._table))
        while some := tuple(islice(keys, QUEUES_PER_SLICE)):
            for key in some:
                reason = self._is_gone(key)
                if reason is not None:
                    _log.info("order info of %s, queue %d, removed: %s", *key, reason)
                    self._table.remove(key)
                    self._lock_free.put(key, None)
            yield

    def _is_gone(self, key: OrderKey) -> str | None:
        """Return why the broker may forget the queue; None if it may not."""
        names, info = topic_and_group(key), self._table.get(key)
        if names is None or info is None:
            return None
        topic = self._topics.find(names[0])
        if topic is None:
            return "the topic does not exist"
        if self._groups.get(names[1]) is None:
            return "the group does not exist"
        if key[1] >= topic.read_queue_nums:
            return "the queue does not exist"
        if self._clock.now_ms() - info.last_consume_timestamp > _KEPT_MS:
            return "nothing was popped for a day"
        return None

    def _write(self, infos: Mapping[OrderKey, OrderInfo]) -> None:
        self._file.save_text(order_info_file.text(infos))

    def _saved(self, saving: asyncio.Future[None]) -> None:
        self._saving = None
        if saving.cancelled():
            return
        error = saving.exception()
        if error is not None:
            self._table.is_changed = True
            _log.error("can not save order infos, will try again: %s", error)
