"""PopQueues: the queues that a push consumer pops now, and those whose messages it still holds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from rewindmq.client.push.host import PushHost
from rewindmq.client.push.pop.acknowledger import Acknowledger
from rewindmq.client.push.pop.pop_loop import PopLoop
from rewindmq.client.push.pop.process_queue import PopProcessQueue
from rewindmq.protocol.message_queue import MessageQueue


class PopQueues:
    """Starts and stops the loops as the broker assigns queues."""

    def __init__(self, consumer: PushHost, acks: Acknowledger) -> None:
        self._consumer = consumer
        self._acks = acks
        self._loops: dict[MessageQueue, PopLoop] = {}
        # Stopped loops whose messages are not all acknowledged, or that may still get some.
        self._left: list[PopLoop] = []
        self._is_over = False

    def assign(self, topic: str, queues: Collection[MessageQueue]) -> bool:
        """Pop these queues of a topic and no others; return True if that is a change."""
        gone = [queue for queue in self._loops if queue.topic == topic and queue not in queues]
        new = [queue for queue in queues if queue not in self._loops]
        for queue in gone:
            self._drop(queue)
        if self._is_over:
            return False
        for queue in new:
            self._start(queue)
        return bool(gone or new)

    def keep_topics(self, topics: Collection[str]) -> None:
        """Stop popping all other topics."""
        for queue in [queue for queue in self._loops if queue.topic not in topics]:
            self._drop(queue)

    def close(self) -> None:
        """Stop all loops, and start no more. Held messages stay held."""
        self._is_over = True
        self.keep_topics(())
        for loop in self._left:
            loop.cancel()

    @property
    def queues(self) -> dict[MessageQueue, PopProcessQueue]:
        """The queues that the consumer pops now."""
        return {queue: loop.process_queue for queue, loop in self._loops.items()}

    def all_held(self) -> Iterator[tuple[MessageQueue, PopProcessQueue]]:
        """Return every queue of which messages may be held."""
        self._left = [loop for loop in self._left if not loop.is_over]
        for loop in (*self._loops.values(), *self._left):
            yield loop.queue, loop.process_queue

    def _start(self, queue: MessageQueue) -> None:
        consumer = self._consumer
        process_queue = PopProcessQueue(consumer.runtime.clock.monotonic())
        loop = PopLoop(consumer, queue, process_queue, partial(self._acks.ack, queue.topic))
        self._loops[queue] = loop
        loop.start(consumer.profile.dispatch_delay)

    def _drop(self, queue: MessageQueue) -> None:
        loop = self._loops.pop(queue)
        loop.stop()
        self._left.append(loop)
