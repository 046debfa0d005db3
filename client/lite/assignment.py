"""The assignment of a lite pull consumer: its queues, each with a pull task (docs/spec/client.md C.14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rewindmq.client.consume.offset_store import NO_OFFSET
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.rebalance import PullTarget
from rewindmq.client.lite.assigned_queue import AssignedQueue, ConsumeRequests
from rewindmq.client.lite.host import LiteHost
from rewindmq.client.lite.pull_task import LitePullTask
from rewindmq.protocol.message_queue import MessageQueue


class LiteAssignment:
    """Starts and cancels pull tasks when queues are taken over, given up, or moved by a fenced reset.

    Args:
        requests: the batches of all queues; those of a queue that is given up are discarded.
    """

    def __init__(self, consumer: LiteHost, requests: ConsumeRequests) -> None:
        self._consumer = consumer
        self._requests = requests
        self._assigned: dict[MessageQueue, AssignedQueue] = {}
        self._tasks: dict[MessageQueue, LitePullTask] = {}

    def __iter__(self) -> Iterator[AssignedQueue]:
        return iter(self._assigned.values())

    def find(self, queue: MessageQueue) -> AssignedQueue | None:
        """Return the assigned queue, None if it is not pulled."""
        return self._assigned.get(queue)

    def take_over(self, targets: Iterable[PullTarget]) -> None:
        """Start to pull these queues."""
        for target in targets:
            assigned = AssignedQueue(target.queue, target.process_queue, target.offset)
            self._assigned[target.queue] = assigned
            self._tasks[target.queue] = LitePullTask(self._consumer, assigned)

    def dropped(self, process_queue: ProcessQueue) -> None:
        """Stop the pulls of a queue that is given up, and discard its batches."""
        for queue, assigned in self._assigned.items():
            if assigned.process_queue is process_queue:
                self._tasks.pop(queue).cancel()
                self._requests.forget(self._assigned.pop(queue))
                return

    def replace(self, wanted: Sequence[MessageQueue], owned: dict[MessageQueue, ProcessQueue]) -> None:
        """Own and pull exactly the queues ``wanted``; queues that stay keep their cache and pulls."""
        consumer, runtime = self._consumer, self._consumer.runtime
        for queue in [queue for queue in owned if queue not in wanted]:
            consumer.rebalancer.drop(queue, owned.pop(queue))
        for queue in wanted:
            if queue not in owned:
                epoch = consumer.offset_store.epoch(queue)
                owned[queue] = ProcessQueue(runtime.clock.monotonic(), next(runtime.numbers), epoch)
                self.take_over([PullTarget(queue, owned[queue], NO_OFFSET)])

    def seek(self, assigned: AssignedQueue, offset: int) -> None:
        """Continue at ``offset``; discard cached messages and batches."""
        assigned.process_queue.clear()
        self._requests.forget(assigned)
        assigned.seek_offset = offset
        self._tasks[assigned.queue].cancel()
        self._tasks[assigned.queue] = LitePullTask(self._consumer, assigned)
