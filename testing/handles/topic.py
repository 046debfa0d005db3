"""Topic: sends messages of a test, and remembers them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from rewindmq.client.produce.producer import Producer
from rewindmq.client.produce.queue_selector import select_queue_by_hash
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.properties import DELAY, TIMER_DELAY_MS, TIMER_DELAY_SEC, TIMER_DELIVER_MS
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.testing.errors import KitError
from rewindmq.testing.handles.context import Context
from rewindmq.testing.handles.mark import Mark
from rewindmq.testing.messages.kit_message import KitMessage, in_queue_order
from rewindmq.testing.messages.payload import Key, key_of, message_of

_DELAYS: Final = frozenset((DELAY, TIMER_DELAY_MS, TIMER_DELAY_SEC, TIMER_DELIVER_MS))
_BATCH_MESSAGES: Final = 256
_BATCH_BYTES: Final = 1 << 20


class Topic:
    """One topic of a test.

    Attributes:
        name: its name at the cluster; ``str(topic)`` is the same.
        queues: its number of queues at each broker.
    """

    def __init__(self, context: Context, name: str, queues: int) -> None:
        self.name = name
        self.queues = queues
        self._context = context
        self._turn = itertools.count()

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Topic {self.name}, {self.queues} queues>"

    async def send(
        self,
        payload: object,
        *,
        key: Key = None,
        tags: str | None = None,
        delay_level: int = 0,
        queue: int | MessageQueue | None = None,
    ) -> KitMessage:
        """Send one message and wait until it is stored.

        A timer message is a ``Message`` with its time; its ``offset`` is -1 until it is delivered.

        Args:
            payload: bytes, text, a JSON value (also a dataclass) or a ``Message``.
            key: messages with equal keys go to the same queue, and have the key among their ``keys``: the
                name of a field of the payload, or a function that returns the key.
            tags: the message's tag.
            delay_level: 1 to 18; the message is delivered later, and its ``offset`` is -1.
            queue: the queue, or its id at the first broker; None: by key, else in turn.

        Raises:
            KitError: the payload has no JSON form, or not the field ``key``.
            RewindMQError: the broker refused the message, or did not answer.
        """
        producer = await self._context.producer()
        queues = await producer.fetch_publish_message_queues(self.name)
        text = key_of(payload, key)
        message = message_of(self.name, payload, tags, text, delay_level)
        target = self._target(queues, message, text) if queue is None else _chosen(queues, queue)
        return self._remember(await self._send(producer, message, target))

    async def send_many(
        self, payloads: Iterable[object], *, key: Key = None, tags: str | None = None
    ) -> list[KitMessage]:
        """Send messages, in batches for each queue; return them in the order of the payloads.

        Messages of one queue keep their order; messages of different queues are sent at the same time. If one
        send fails, ``sent`` has the messages that were confirmed before. Arguments and errors are those of
        ``send``.
        """
        producer = await self._context.producer()
        queues = await producer.fetch_publish_message_queues(self.name)
        by_queue: dict[MessageQueue, list[tuple[int, Message]]] = {}
        for place, payload in enumerate(payloads):
            text = key_of(payload, key)
            message = message_of(self.name, payload, tags, text, 0)
            by_queue.setdefault(self._target(queues, message, text), []).append((place, message))
        sent: dict[int, KitMessage] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for queue, entries in by_queue.items():
                    group.create_task(self._send_in_order(producer, queue, entries, sent))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            in_order = [self._remember(sent[place]) for place in sorted(sent)]
        return in_order

    @property
    def sent(self) -> list[KitMessage]:
        """The messages that this handle has sent, by queue and offset."""
        return self._sent_from(0)

    def since(self, mark: Mark) -> list[KitMessage]:
        """Return the messages that this handle has sent since a mark, by queue and offset."""
        return self._sent_from(mark.sent)

    async def read(self) -> list[KitMessage]:
        """Return all messages of the topic, including messages of other senders, by queue and offset."""
        return await self._context.read(self.name)

    def _sent_from(self, number: int) -> list[KitMessage]:
        sent = itertools.islice(self._context.sent.values(), number, None)
        return in_queue_order(message for message in sent if message.queue.topic == self.name)

    def _target(self, queues: Sequence[MessageQueue], message: Message, key: str | None) -> MessageQueue:
        if key is not None:
            return select_queue_by_hash(queues, message, key)
        return queues[next(self._turn) % len(queues)]

    async def _send_in_order(
        self,
        producer: Producer,
        queue: MessageQueue,
        entries: Sequence[tuple[int, Message]],
        sent: dict[int, KitMessage],
    ) -> None:
        for batch in _batches(entries):
            if len(batch) == 1:
                (place, message) = batch[0]
                sent[place] = await self._send(producer, message, queue)
                continue
            result = await producer.send_batch([message for _, message in batch], queue=queue)
            for offset, (place, message) in enumerate(batch, result.queue_offset):
                sent[place] = _sent_message(message, queue, offset)

    async def _send(self, producer: Producer, message: Message, queue: MessageQueue) -> KitMessage:
        result = await producer.send(message, queue=queue)
        offset = -1 if DELAY in message.properties or result.recall_handle else result.queue_offset
        return _sent_message(message, queue, offset)

    def _remember(self, message: KitMessage) -> KitMessage:
        self._context.sent[message.id] = message
        return message


def _batches(entries: Sequence[tuple[int, Message]]) -> Iterable[list[tuple[int, Message]]]:
    """Divide messages of one queue into batches; a delayed message is sent alone."""
    batch: list[tuple[int, Message]] = []
    size = 0
    for entry in entries:
        message = entry[1]
        is_alone = not _DELAYS.isdisjoint(message.properties)
        if batch and (is_alone or len(batch) == _BATCH_MESSAGES or size + len(message.body) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += len(message.body)
        if is_alone:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _chosen(queues: Sequence[MessageQueue], queue: int | MessageQueue) -> MessageQueue:
    if isinstance(queue, MessageQueue):
        return queue
    for each in queues:
        if each.queue_id == queue:
            return each
    raise KitError(f"the topic has no queue {queue}; it has {', '.join(map(str, queues))}")


def _sent_message(message: Message, queue: MessageQueue, offset: int) -> KitMessage:
    assert message.unique_key is not None, "the producer sets it"
    return KitMessage(message.unique_key, bytes(message.body), queue, offset, message.tags, message.keys)
