"""What consumers that own queues do when told of another epoch (fenced resets, ``docs/reset.md``)."""

from __future__ import annotations

from rewindmq.client.consume.consumer import Consumer
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.header.offset import OffsetFencedResponseHeader
from rewindmq.protocol.message_queue import MessageQueue


class EpochConsumer(Consumer):
    """Base of the consumers that pull by themselves: push and lite pull consumers."""

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues owned now."""
        return self.rebalancer.process_queues

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """A fenced reset has moved this queue; see ``Rebalance.begin_again``."""
        if self.is_running:
            self.rebalancer.begin_again(queue, process_queue, offset, epoch)

    def queue_reset(self, queue: MessageQueue, offset: int, epoch: int) -> None:
        """See ``ConsumerInner``; an answer may have told of this reset, or of a later one, before."""
        owner = self.process_queues.get(queue)
        if owner is not None and owner.epoch is not None and owner.epoch < epoch:
            self.begin_again(queue, owner, offset, epoch)

    def _commit_fenced(self, queue: MessageQueue, epoch: int, held: OffsetFencedResponseHeader) -> None:
        """A commit of an epoch that is over; a pull of the queue may have told so before."""
        owner = self.process_queues.get(queue)
        if owner is not None and owner.epoch == epoch != held.epoch:
            self.begin_again(queue, owner, held.offset, held.epoch)
