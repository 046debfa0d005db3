"""QueueLocks: acquires, refreshes and releases the broker's queue locks for one orderly consumer.

Specification: docs/spec/broker.md B.15, docs/spec/client.md C.5, C.11.

Source: ``RebalanceImpl`` and ``RebalancePushImpl`` of 4.9.4 and 5.3.3; ``lock_profile`` has the differences.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

from rewindmq.client.consume.orderly_queue import OrderlyProcessQueue
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.core.instance import ClientInstance
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Runtime

LOCK_INTERVAL: Final = (1.0, 20.0)
UNLOCK_DELAY_SECONDS: Final = 20.0

_log = logging.getLogger(__name__)


class _Offsets(Protocol):
    async def persist(self, queue: MessageQueue) -> None: ...

    async def remove(self, queue: MessageQueue) -> None: ...


class QueueLocks:
    """Acquires, refreshes and releases the locks of one consumer's queues.

    Args:
        process_queues: the owned queues, shared with the rebalance.
        offsets: the store that commits their progress.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        model: MessageModel,
        offsets: _Offsets,
        process_queues: dict[MessageQueue, ProcessQueue],
    ) -> None:
        self._instance = instance
        self._group = group
        self._offsets = offsets
        self._process_queues = process_queues
        self._profile = instance.profile.lock_profile
        self._is_shared = model is MessageModel.CLUSTERING
        self._locks_new = self._is_shared or self._profile.locks_broadcasting

    def new_process_queue(self, now: float, chain: int, epoch: int | None) -> OrderlyProcessQueue:
        """Return the ProcessQueue of a newly assigned queue."""
        return OrderlyProcessQueue(now, chain, epoch, locked=self._profile.new_queue_is_locked)

    # Locking.

    async def lock_new(self, queue: MessageQueue) -> bool:
        """Lock a queue before it is assigned; True if that succeeds or no lock is needed."""
        return not self._locks_new or await self.lock(queue)

    async def lock(self, queue: MessageQueue) -> bool:
        """Ask the broker to lock a queue; False if it refuses or does not respond within a second."""
        try:
            granted = await self._ask(queue.broker_name, {queue})
        except RewindMQError as error:
            _log.error("lockBatchMQ exception, %s: %s", queue, error)
            return False
        self._apply_response(granted, granted)
        return queue in granted

    async def lock_all(self) -> None:
        """Refresh the locks of all queues, broker by broker.

        If a broker does not respond, its queues keep their lock state.
        """
        for broker_name, queues in self._by_broker(dropped=self._profile.refreshes_dropped).items():
            try:
                granted = await self._ask(broker_name, queues)
            except RewindMQError as error:
                _log.error("lockBatchMQ exception, %s: %s", broker_name, error)
            else:
                self._apply_response(queues, granted)

    async def _ask(self, broker_name: str, queues: set[MessageQueue]) -> set[MessageQueue]:
        instance = self._instance
        address = instance.routes.require_master_address(broker_name)
        return await instance.api.lock_queues(address, self._group, instance.client_id, queues)

    def _apply_response(self, queues: set[MessageQueue], granted: set[MessageQueue]) -> None:
        now = self._instance.runtime.clock.monotonic()
        for queue in queues:
            process_queue = self._process_queues.get(queue)
            if not isinstance(process_queue, OrderlyProcessQueue):
                continue
            if queue in granted:
                process_queue.lock_granted(now)
            else:
                process_queue.locked = False
                _log.warning("the message queue locked Failed, Group: %s %s", self._group, queue)

    # Unlocking.

    async def unlock(self, queue: MessageQueue) -> None:
        """Unlock a queue at the broker, without waiting for a response; errors are logged."""
        instance = self._instance
        try:
            address = instance.routes.require_master_address(queue.broker_name)
            await instance.api.unlock_queues_oneway(address, self._group, instance.client_id, {queue})
        except RewindMQError as error:
            _log.error("unlockBatchMQ exception, %s: %s", queue, error)

    async def unlock_all(self) -> None:
        """Unlock all queues when the consumer stops; wait up to a second for each broker."""
        if not self._is_shared:
            return
        instance = self._instance
        for broker_name, queues in self._by_broker(dropped=True).items():
            try:
                address = instance.routes.require_master_address(broker_name)
                await instance.api.unlock_queues(address, self._group, instance.client_id, queues)
            except RewindMQError as error:
                _log.error("unlockBatchMQ exception, %s: %s", broker_name, error)
            else:
                for queue in queues:
                    process_queue = self._process_queues.get(queue)
                    if isinstance(process_queue, OrderlyProcessQueue):
                        process_queue.locked = False

    async def give_up(self, queue: MessageQueue, process_queue: ProcessQueue | None) -> bool:
        """Commit the offset of a dropped queue, and unlock the queue once no listener runs.

        Returns:
            True if the queue may be removed from the table; False if the caller must try again.
        """
        await self._offsets.persist(queue)
        if not self._is_shared or not isinstance(process_queue, OrderlyProcessQueue):
            await self._offsets.remove(queue)
            return True
        if self._profile.forces_unlock:
            return await self._unlock_by_force(queue, process_queue)
        await self._offsets.remove(queue)
        return await self._unlock_when_idle(queue, process_queue)

    async def _unlock_when_idle(self, queue: MessageQueue, process_queue: OrderlyProcessQueue) -> bool:
        """Unlock as 4.x does: at once, or after 20 s if messages are still waiting for the listener."""
        if not await self._acquire_consume_lock(process_queue):
            _log.warning(
                "[WRONG]mq is consuming, so can not unlock it, %s. maybe hanged for a while, %d",
                queue,
                process_queue.try_unlock_times,
            )
            return False
        process_queue.consume_lock.release()
        if process_queue.has_waiting:
            self._instance.spawn(self._unlock_later(queue))
        else:
            await self.unlock(queue)
        return True

    async def _unlock_later(self, queue: MessageQueue) -> None:
        await self._instance.runtime.timers.sleep(UNLOCK_DELAY_SECONDS)
        await self.unlock(queue)

    async def _unlock_by_force(self, queue: MessageQueue, process_queue: OrderlyProcessQueue) -> bool:
        """Unlock as 5.x does: at once if no listener runs or the last refresh is older than 20 s."""
        now = self._instance.runtime.clock.monotonic()
        is_forced = process_queue.dropped and now > process_queue.last_lock + UNLOCK_DELAY_SECONDS
        if not is_forced and not await self._acquire_consume_lock(process_queue):
            return False
        try:
            await self._offsets.persist(queue)
            await self._offsets.remove(queue)
            process_queue.locked = False
            await self.unlock(queue)
        finally:
            if not is_forced:
                process_queue.consume_lock.release()
        return True

    async def _acquire_consume_lock(self, process_queue: OrderlyProcessQueue) -> bool:
        """Acquire the consume lock within the profile's wait; False if a listener still runs."""
        if await acquire_within(
            process_queue.consume_lock, self._profile.listener_wait, self._instance.runtime
        ):
            return True
        process_queue.try_unlock_times += 1
        return False

    def _by_broker(self, *, dropped: bool) -> dict[str, set[MessageQueue]]:
        table: dict[str, set[MessageQueue]] = {}
        for queue, process_queue in self._process_queues.items():
            if dropped or not process_queue.dropped:
                table.setdefault(queue.broker_name, set()).add(queue)
        return table


async def acquire_within(lock: asyncio.Lock, seconds: float, runtime: Runtime) -> bool:
    """Acquire a lock; False if that takes longer than so many protocol seconds."""
    if not lock.locked():
        return await lock.acquire()
    attempt = asyncio.get_running_loop().create_task(lock.acquire())
    timer = runtime.timers.call_later(seconds, attempt.cancel)
    try:
        await asyncio.wait({attempt})
    except asyncio.CancelledError:
        attempt.cancel()
        if attempt.done() and not attempt.cancelled():
            lock.release()
        raise
    finally:
        timer.cancel()
    return not attempt.cancelled()
