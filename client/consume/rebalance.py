"""Rebalance: assigns queues to one consumer, and drops those it no longer owns.

Specification: docs/spec/client.md C.5. Source: ``RebalanceImpl`` of 4.9.4 and 5.3.3.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rewindmq.client.consume.allocate import AllocateStrategy
from rewindmq.client.consume.orderly_queue import OrderlyProcessQueue
from rewindmq.client.consume.probe_details import queue_details
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.queue_locks import QueueLocks
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.body.heartbeat import MessageModel, SubscriptionData
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

_log = logging.getLogger(__name__)


class QueueOffsets(Protocol):
    """The part of an offset store that the rebalance uses."""

    async def persist(self, queue: MessageQueue) -> None: ...

    async def remove(self, queue: MessageQueue) -> None: ...

    def read_memory(self, queue: MessageQueue) -> int: ...

    def epoch(self, queue: MessageQueue) -> int | None: ...

    def begin_again(self, queue: MessageQueue, offset: int, epoch: int) -> None: ...


@dataclass(frozen=True, slots=True)
class PullTarget:
    """A newly assigned queue, and the offset of its first pull."""

    queue: MessageQueue
    process_queue: ProcessQueue
    offset: int


class Rebalance:
    """Assigns and drops the queues of one consumer.

    Args:
        process_queues: the owned queues, shared with the offset store.
        start_offset: returns the first pull offset of a new queue. If it raises RewindMQError, the queue is
            skipped until the next rebalance.
        dispatch: called with the newly assigned queues of one topic, to start pulling them.
        on_drop: called for each queue when it is dropped.
        on_change: called with the topic after its owned queues changed.
        replaces_stuck: whether to replace queues that were not pulled for 120 s (push consumers).
        locks: the locks of an orderly consumer's queues; None for other consumers.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        model: MessageModel,
        strategy: AllocateStrategy,
        offsets: QueueOffsets,
        process_queues: dict[MessageQueue, ProcessQueue],
        *,
        start_offset: Callable[[MessageQueue], Awaitable[int]],
        dispatch: Callable[[list[PullTarget]], None],
        on_drop: Callable[[ProcessQueue], None],
        on_change: Callable[[str], Awaitable[None]],
        replaces_stuck: bool,
        locks: QueueLocks | None = None,
    ) -> None:
        self._instance = instance
        self._group = group
        self._model = model
        self._strategy = strategy
        self._offsets = offsets
        self._start_offset = start_offset
        self._dispatch = dispatch
        self._on_drop = on_drop
        self._on_change = on_change
        self._replaces_stuck = replaces_stuck
        self._locks = locks
        self._is_over = False
        # Consumers of the group with this consumer's client id in the last list that a broker returned.
        self._namesakes = 1
        self.process_queues = process_queues
        # The readable queues of each topic's route; filled by the consumer.
        self.topic_queues: dict[str, list[MessageQueue]] = {}

    async def run(self, subscriptions: Mapping[str, SubscriptionData]) -> bool:
        """Rebalance all subscribed topics once; True if the consumer now owns all its queues.

        A topic without a route or a consumer list is skipped and counts as balanced.
        """
        balanced = True
        for topic in list(subscriptions):
            try:
                balanced = await self._run_topic(topic) and balanced
            except RewindMQError as error:
                _log.warning("rebalance of %s in group %s: %s", topic, self._group, error)
                balanced = False
        for queue in [queue for queue in self.process_queues if queue.topic not in subscriptions]:
            self.drop(queue, self.process_queues.pop(queue))
        return balanced

    async def _run_topic(self, topic: str) -> bool:
        queues = self.topic_queues.get(topic)
        if not queues:
            _log.debug("doRebalance, %s, but the topic[%s] not exist.", self._group, topic)
            return True
        mine: Sequence[MessageQueue] = queues
        if self._model is MessageModel.CLUSTERING:
            try:
                client_ids = await self._consumer_ids(topic)
            except RewindMQError as error:
                _log.warning("doRebalance, %s %s, get consumer id list failed: %s", self._group, topic, error)
                return True
            mine = self._strategy.allocate(self._group, self._instance.client_id, queues, client_ids)
        return await self._own(topic, mine)

    async def _own(self, topic: str, mine: Sequence[MessageQueue], *, changed: bool = False) -> bool:
        """Own these queues of a topic and no others; True if that is so.

        Args:
            changed: the topic's queues have changed otherwise, too.
        """
        changed = await self._give_up(topic, frozenset(mine)) or changed
        changed = await self._take_over(mine) or changed
        probe = self._instance.runtime.probe
        if probe is not None:
            details = {"client_id": self._instance.client_id, "group": self._group, "topic": topic}
            probe(Point.REBALANCED, {**details, "queues": len(mine), "changed": changed})
        if changed:
            await self._on_change(topic)
        return all(queue in self.process_queues and not self.process_queues[queue].dropped for queue in mine)

    async def _consumer_ids(self, topic: str) -> list[str]:
        """Return the client ids of the group, from a random broker of the topic.

        Raises:
            RewindMQError: the broker did not return the list.
        """
        instance = self._instance
        names = sorted({queue.broker_name for queue in self.topic_queues[topic]})
        address = await instance.routes.subscribe_address(topic, instance.runtime.random.choice(names))
        client_ids = sorted(await instance.api.consumer_ids(address, self._group))
        self._note_namesakes(client_ids.count(instance.client_id))
        return client_ids

    def _note_namesakes(self, count: int) -> None:
        """Warn once of other consumers with this consumer's client id: they get the same queues."""
        if count > max(self._namesakes, 1):
            _log.warning(
                "%d consumers of group %s have the client id %s: they consume the same messages, and leave"
                " other queues to no consumer; give each an instance_name of its own (a consumer that has"
                " just connected again shows this for up to 120 s)",
                count,
                self._group,
                self._instance.client_id,
            )
        self._namesakes = count

    async def _give_up(self, topic: str, mine: frozenset[MessageQueue]) -> bool:
        now = self._instance.runtime.clock.monotonic()
        changed = False
        for queue, process_queue in list(self.process_queues.items()):
            if queue.topic != topic:
                continue
            is_stuck = self._replaces_stuck and process_queue.is_pull_expired(now)
            if queue in mine and not is_stuck:
                continue
            if is_stuck:
                _log.error(
                    "[BUG]doRebalance, %s, remove unnecessary mq, %s, because pull is pause",
                    self._group,
                    queue,
                )
            self.drop(queue, process_queue)
            may_leave = True
            try:
                may_leave = await self.remove_unnecessary(queue, process_queue)
            finally:
                # Also if this fails or is cancelled: a dropped queue in the table would block its assignment
                # for 120 s. A reset may have replaced or removed the queue meanwhile.
                if may_leave and self.process_queues.get(queue) is process_queue:
                    del self.process_queues[queue]
            changed = may_leave or changed
        return changed

    async def _take_over(self, mine: Sequence[MessageQueue]) -> bool:
        """Assign the queues of ``mine`` that are not owned yet; as in RocketMQ, start all pulls at the end.

        Start them even if a later assignment fails or is cancelled. A queue in the table that is not pulled
        would be replaced only after 120 s.
        """
        targets: list[PullTarget] = []
        try:
            for queue in mine:
                if queue not in self.process_queues:
                    target = await self._take_over_one(queue)
                    if target is not None:
                        targets.append(target)
        finally:
            # While other queues were assigned, a queue may have been dropped or replaced by a reset.
            self._dispatch([target for target in targets if not target.process_queue.dropped])
        return bool(targets)

    async def _take_over_one(self, queue: MessageQueue) -> PullTarget | None:
        """Assign one queue; return None to skip it until the next rebalance.

        No await follows the change of the table, so a cancellation cannot leave a queue there without pulls.
        """
        if self._locks is not None and not await self._locks.lock_new(queue):
            _log.warning("doRebalance, %s, add a new mq failed, %s, because lock failed", self._group, queue)
            return None
        await self._offsets.remove(queue)
        try:
            offset = await self._start_offset(queue)
        except RewindMQError as error:
            _log.warning("doRebalance, %s, compute offset failed, %s: %s", self._group, queue, error)
            return None
        if queue in self.process_queues:
            _log.info("doRebalance, %s, mq already exists, %s", self._group, queue)
            return None
        if self._is_over:
            return None
        process_queue = self._new_process_queue(self._offsets.epoch(queue))
        self.process_queues[queue] = process_queue
        self._emit(Point.QUEUE_ADDED, queue, offset, process_queue)
        return PullTarget(queue, process_queue, offset)

    def _new_process_queue(self, epoch: int | None) -> ProcessQueue:
        runtime = self._instance.runtime
        now, chain = runtime.clock.monotonic(), next(runtime.numbers)
        if self._locks is not None:
            return self._locks.new_process_queue(now, chain, epoch)
        return ProcessQueue(now, chain, epoch)

    def _emit(self, point: Point, queue: MessageQueue, offset: int, process_queue: ProcessQueue) -> None:
        probe = self._instance.runtime.probe
        if probe is not None:
            probe(point, queue_details(self._instance.client_id, self._group, queue, offset, process_queue))

    def drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Mark a queue as dropped: its pulls stop, and results of running listeners are discarded.

        The caller decides whether the queue stays in the table.
        """
        if process_queue.dropped:
            return
        process_queue.dropped = True
        self._emit(Point.QUEUE_DROPPED, queue, self._offsets.read_memory(queue), process_queue)
        self._on_drop(process_queue)

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """Restart an owned queue at the offset of a fenced reset, at once; other queues are not affected.

        Do nothing if ``process_queue`` is dropped or no longer registered for the queue. In that case the
        queue's next owner reads the offset from the broker.
        """
        if process_queue.dropped or self.process_queues.get(queue) is not process_queue:
            return
        self.drop(queue, process_queue)
        process_queue.clear()
        fresh = self._new_process_queue(epoch)
        if isinstance(fresh, OrderlyProcessQueue):
            fresh.take_lock_of(process_queue)
        self.process_queues[queue] = fresh
        self._offsets.begin_again(queue, offset, epoch)
        self._emit(Point.QUEUE_RESTARTED, queue, offset, fresh)
        self._dispatch([PullTarget(queue, fresh, offset)])

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue | None) -> bool:
        """Commit the queue's offset and remove it from memory.

        Returns:
            True if the queue may be removed from the table; False while an orderly listener still runs.
        """
        if self._locks is not None:
            return await self._locks.give_up(queue, process_queue)
        await self._offsets.persist(queue)
        await self._offsets.remove(queue)
        return True

    async def remove_process_queue(self, queue: MessageQueue) -> None:
        """Remove the queue from the table, drop it, and commit its offset."""
        process_queue = self.process_queues.pop(queue, None)
        if process_queue is not None:
            self.drop(queue, process_queue)
            await self.remove_unnecessary(queue, process_queue)

    def drop_all(self) -> None:
        """Drop all queues, and assign no more; send no request. This is the last step of a shutdown."""
        self._is_over = True
        for queue, process_queue in self.process_queues.items():
            self.drop(queue, process_queue)
        self.process_queues.clear()
