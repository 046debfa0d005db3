"""EpochConsumer: restarts queues that a fenced reset has moved (``docs/reset.md``)."""

from __future__ import annotations

from rewindmq.client.consume.consumer import Consumer
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.header.offset import OffsetFencedResponseHeader
from rewindmq.protocol.message_queue import MessageQueue


class EpochConsumer(Consumer):
    """Base class of push and lite pull consumers, which own queues."""

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that the consumer owns now."""
        return self.rebalancer.process_queues

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """Restart a queue that a fenced reset has moved; see ``Rebalance.begin_again``."""
        if self.is_running:
            self.rebalancer.begin_again(queue, process_queue, offset, epoch)

    def queue_reset(self, queue: MessageQueue, offset: int, epoch: int) -> None:
        """See ``ConsumerInner``. Do nothing if a response has already announced this reset or a later one."""
        owner = self.process_queues.get(queue)
        if owner is not None and owner.epoch is not None and owner.epoch < epoch:
            self.begin_again(queue, owner, offset, epoch)

    def _commit_fenced(self, queue: MessageQueue, epoch: int, stored: OffsetFencedResponseHeader) -> None:
        """Handle a commit that the broker refused because of its epoch.

        Do nothing if a pull response has already announced the new epoch.
        """
        owner = self.process_queues.get(queue)
        if owner is not None and owner.epoch == epoch != stored.epoch:
            self.begin_again(queue, owner, stored.offset, stored.epoch)
