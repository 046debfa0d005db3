"""Kept resets under ordinary loads: how many a watcher proves, and how long after the last redelivery."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PushConsumer,
)
from rewindmq.client.admin.watched_reset.run import run_watched
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.verdict.reset_watch import Change
from rewindmq.watch.verdict.states import State

QUEUES: Final = 8
_PATIENCE: Final = 120.0
_BATCH: Final = 100
_POLL: Final = 0.2


@dataclass(frozen=True, slots=True)
class WatchedLoad:
    """A group and its traffic.

    Attributes:
        messages: in the topic before the reset, all consumed.
        per_second: messages that arrive all the time; 0: the group is idle.
    """

    messages: int
    consumers: int
    per_second: int = 0

    @property
    def title(self) -> str:
        traffic = f"{self.per_second:,} messages/s" if self.per_second else "idle"
        members = "1 consumer" if self.consumers == 1 else f"{self.consumers} consumers"
        return f"{self.messages:,} messages, {members}, {traffic}"


LOADS: Final = (
    WatchedLoad(10, 1),
    WatchedLoad(1_000, 2),
    WatchedLoad(100_000, 8),
    WatchedLoad(3_000, 2, 100),
    WatchedLoad(3_000, 2, 2_000),
)


@dataclass(frozen=True, slots=True)
class MeasuredReset:
    """One watched reset.

    Attributes:
        proven: share of its queues that were proven.
        seconds: from the last redelivered message to the last verdict.
        is_kept: every message came again.
        reasons: of the queues that were not proven.
    """

    proven: float
    seconds: float
    is_kept: bool
    reasons: Counter[str] = field(default_factory=Counter)


class Again(NamedTuple):
    """How many messages came again, and the monotonic time of the last of them."""

    messages: int
    last: float


class RunningGroup(Protocol):
    """The running consumers of a group."""

    async def begin(self, ends: Mapping[MessageQueue, int]) -> None:
        """Look for messages before these offsets from now on."""
        ...

    async def again(self) -> Again:
        """Return what came again since."""
        ...


# Name server, name of topic and group, number of consumers.
Join = Callable[[str, str, int], AbstractAsyncContextManager[RunningGroup]]


class _Deliveries:
    """Notes what the consumers of a group get."""

    def __init__(self) -> None:
        self._ends: Mapping[MessageQueue, int] = {}
        self._again: set[tuple[MessageQueue, int]] = set()
        self._last = 0.0

    async def begin(self, ends: Mapping[MessageQueue, int]) -> None:
        """See ``RunningGroup``."""
        self._ends = ends

    async def again(self) -> Again:
        """See ``RunningGroup``."""
        return Again(len(self._again), self._last)

    def note(self, messages: Sequence[MessageExt]) -> None:
        for message in messages:
            queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
            if message.queue_offset < self._ends.get(queue, 0):
                self._again.add((queue, message.queue_offset))
                self._last = time.monotonic()


@asynccontextmanager
async def _join(namesrv: str, name: str, count: int) -> AsyncIterator[RunningGroup]:
    """Run RewindMQ's push consumers."""
    deliveries = _Deliveries()
    async with AsyncExitStack() as exits:
        for number in range(count):
            await exits.enter_async_context(_consumer(namesrv, name, number, deliveries))
        yield deliveries


async def measure(
    namesrv: str,
    broker: str,
    load: WatchedLoad,
    mode: ResetMode | None,
    name: str,
    *,
    join: Join = _join,
    idle: float = 0.0,
) -> MeasuredReset:
    """Reset a group of its own to the start, and watch it.

    Args:
        broker: address of the only broker.
        mode: None: RocketMQ's broker decides.
        name: of the topic and group.
        join: runs the consumers.
        idle: seconds to wait before the reset.
    """
    async with AsyncExitStack() as exits:
        admin = await exits.enter_async_context(AdminClient(namesrv))
        config = TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await admin.topics.create_and_update_topic_config(broker, config)
        producer = await exits.enter_async_context(Producer(f"{name}-producer", namesrv_addr=namesrv))
        await _send(producer, name, load.messages)
        group = await exits.enter_async_context(join(namesrv, name, load.consumers))
        # The broker stores the offsets, so there is no event here.
        while not await _is_stored(admin, name, load.messages):  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        await exits.enter_async_context(_traffic(producer, name, load.per_second))
        await asyncio.sleep(idle)
        stats = await admin.groups.topic_consume_stats(name, name)
        ends = {queue: entry.consumer_offset for queue, entry in stats.offset_table.items()}
        await group.begin(ends)
        ended, proven = 0.0, 0
        reasons: Counter[str] = Counter()
        async for item in run_watched(admin, name, name, 0, mode=mode, patience=_PATIENCE):
            if isinstance(item, Change) and item.watch.is_over:
                ended = time.monotonic()
                proven += item.state is State.PROVEN
                if item.watch.reason:
                    reasons[f"{item.state}: {item.watch.reason}"] += 1
        again = await group.again()
        is_kept = again.messages == sum(ends.values())
        return MeasuredReset(proven / QUEUES, max(0.0, ended - again.last), is_kept, reasons)


async def _send(producer: Producer, topic: str, count: int) -> None:
    queues = await producer.fetch_publish_message_queues(topic)
    for start in range(0, count, _BATCH):
        batch = [Message(topic, b"x" * 100) for _ in range(start, min(count, start + _BATCH))]
        await producer.send_batch(batch, queue=queues[start // _BATCH % len(queues)])


async def _is_stored(admin: AdminClient, name: str, count: int) -> bool:
    """Return True if the group has stored all its offsets: before, brokers refuse a reset."""
    stats = await admin.groups.topic_consume_stats(name, name)
    stored = [await admin.groups.stored_offset(name, queue) for queue in stats.offset_table]
    return None not in stored and sum(offset or 0 for offset in stored) == count


@asynccontextmanager
async def _consumer(
    namesrv: str, name: str, number: int, deliveries: _Deliveries
) -> AsyncIterator[PushConsumer]:
    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        deliveries.note(messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(
        name,
        namesrv_addr=namesrv,
        instance_name=f"{name}-{number}",
        consume_from="first",
        consume_message_batch_max_size=32,
    )
    consumer.subscribe(name)
    consumer.register_message_listener(listener)
    async with consumer:
        yield consumer


@asynccontextmanager
async def _traffic(producer: Producer, topic: str, per_second: int) -> AsyncIterator[None]:
    """Send ``per_second`` messages a second until the block ends."""
    if not per_second:
        yield
        return

    async def send() -> None:
        began, sent = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * per_second) - sent
            await asyncio.gather(*(producer.send(Message(topic, b"x" * 100)) for _ in range(due)))
            sent += due
            await asyncio.sleep(0.05)

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
