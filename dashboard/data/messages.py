"""Finds messages of a topic: the newest, by id, by key, by time, by place in a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from rewindmq.dashboard.data.answer import Answer, NoAnswer
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.protocol.body.stats import TopicOffset
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.message import format_host
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message_queue import MessageQueue

# The most messages that ``since`` leaves out.
MAX_SKIP: Final = 1000
# Messages on one page.
PAGE_MESSAGES: Final = 20
# One search reads at most these bytes of bodies, and one more response to each question at a time.
MAX_BYTES: Final = 32 << 20
# The most questions that a search asks at a time; one to each broker if there are more brokers.
MAX_QUESTIONS: Final = 8
# The most messages that brokers return to one pull.
_PULL_MESSAGES: Final = 32

T = TypeVar("T")


@dataclass
class FoundMessages:
    """What a search found.

    Attributes:
        problems: one sentence for each broker that could not be asked.
        is_cut: the search ended early, because it had read ``MAX_BYTES``.
    """

    messages: list[MessageExt] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


class _Reader:
    """Reads messages for one search, until the search has read enough bytes.

    A broker that leaves a question without an answer gets no further one, so that a search takes 2 s for it
    however many queues it has. Each broker has its own share of the questions at a time: while one hangs, the
    others go on. A refusal is an answer, about one queue.
    """

    def __init__(self, source: ClusterSource, brokers: Iterable[str]) -> None:
        names = frozenset(brokers)
        self._source = source
        self._left = MAX_BYTES
        self._slots = {name: asyncio.Semaphore(max(1, MAX_QUESTIONS // len(names))) for name in names}
        self._silent: set[str] = set()
        self.found = FoundMessages()

    async def read(self, queue: MessageQueue, begin: int, end: int) -> list[MessageExt]:
        """Return the messages of a queue in [begin, end)."""
        messages: list[MessageExt] = []
        while begin < end:
            wanted = min(_PULL_MESSAGES, end - begin)
            result = await self._ask(
                queue, partial(self._source.admin.messages.pull_messages, queue, begin, wanted)
            )
            if result is None:
                break
            # Before any other task runs, and with it the next question.
            self._left -= sum(message.store_size for message in result.messages)
            messages += result.messages
            if result.next_begin_offset <= begin:
                break
            begin = result.next_begin_offset
        return messages

    async def read_since(
        self, queue: MessageQueue, bounds: TopicOffset, begin_ms: int, count: int
    ) -> list[MessageExt]:
        """Return the first messages of a queue that were stored at ``begin_ms`` or later."""
        # Of several messages with the time that is searched, RocketMQ 4.x returns any.
        place = await self._ask(
            queue, partial(self._source.admin.messages.search_offset, queue, max(begin_ms - 1, 0))
        )
        if place is None:
            return []
        position, late = max(place, bounds.min_offset), list[MessageExt]()
        while position < bounds.max_offset and len(late) < count:
            messages = await self.read(queue, position, min(position + count, bounds.max_offset))
            if not messages:
                break
            late += (message for message in messages if message.store_timestamp >= begin_ms)
            position = messages[-1].queue_offset + 1
        return late

    async def _ask(self, queue: MessageQueue, work: Callable[[], Awaitable[T]]) -> T | None:
        """Return the answer of the queue's broker; None: there is none, or the search has read enough."""
        name = queue.broker_name
        async with self._slots[name]:
            if name in self._silent:
                return None
            if self._left <= 0:
                self.found.is_cut = True
                return None
            answer = await self._source.ask(work())
            if answer.value is None:
                self.found.problems.setdefault(name, answer.problem or "")
                if answer.outcome is NoAnswer.SILENT:
                    self._silent.add(name)
        return answer.value


async def newest(source: ClusterSource, topic: str, count: int = PAGE_MESSAGES) -> Answer[FoundMessages]:
    """Return the newest messages of a topic, the newest first."""
    queues = await source.topic_queues(topic)
    if queues.value is None:
        return queues.failed()
    # The newest n messages are in the n queues with the newest last message.
    rows = sorted(queues.value.rows.items(), key=lambda row: -row[1].last_update_timestamp)[:count]
    reader = _Reader(source, (queue.broker_name for queue, _ in rows))
    reader.found.problems |= queues.value.problems
    parts = await asyncio.gather(
        *(
            reader.read(queue, max(bounds.min_offset, bounds.max_offset - count), bounds.max_offset)
            for queue, bounds in rows
        )
    )
    reader.found.messages = sorted(chain.from_iterable(parts), key=_age, reverse=True)[:count]
    return Answer(reader.found)


async def since(
    source: ClusterSource, topic: str, begin_ms: int, skip: int = 0, count: int = PAGE_MESSAGES
) -> Answer[FoundMessages]:
    """Return the first messages that were stored at ``begin_ms`` or later, the oldest first.

    Args:
        skip: leave out as many, of the same millisecond: those of the page before.
    """
    queues = await source.topic_queues(topic)
    if queues.value is None:
        return queues.failed()
    rows = queues.value.rows.items()
    reader = _Reader(source, (queue.broker_name for queue, _ in rows))
    reader.found.problems |= queues.value.problems
    parts = await asyncio.gather(
        *(
            reader.read_since(queue, bounds, begin_ms, skip + count)
            for queue, bounds in rows
            if bounds.last_update_timestamp >= begin_ms
        )
    )
    reader.found.messages = sorted(chain.from_iterable(parts), key=_age)[skip : skip + count]
    return Answer(reader.found)


async def by_key(source: ClusterSource, topic: str, key: str) -> Answer[FoundMessages]:
    """Return the messages with a key, the newest first: up to 64 of each broker."""
    return await _query(source, topic, key, is_unique_key=False)


async def by_id(source: ClusterSource, topic: str, message_id: str) -> Answer[FoundMessages]:
    """Return the messages with a producer's unique id, else the message with an offset id."""
    answer = await _query(source, topic, message_id, is_unique_key=True)
    if answer.value is None or answer.value.messages:
        return answer
    try:
        host = format_host(parse_offset_message_id(message_id)[0])
    except RewindMQError:
        return answer
    # The id has an address in it, and may come from anywhere: only brokers of this cluster are asked.
    brokers = await source.addresses()
    if brokers.value is None or host not in brokers.value or brokers.value[host] in answer.value.problems:
        return answer
    message = await source.ask(source.admin.messages.view_message(message_id))
    if message.value is not None and message.value.topic == topic:
        message.value.broker_name = brokers.value[host]
        answer.value.messages.append(message.value)
    elif message.value is None and message.outcome is not NoAnswer.REFUSED:
        answer.value.problems[host] = message.problem or ""
    return answer


async def of_queue(
    source: ClusterSource, queue: MessageQueue, offset: int, count: int = PAGE_MESSAGES
) -> Answer[FoundMessages]:
    """Return messages of one queue from an offset on."""
    route = await source.masters(queue.topic)
    if route.value is None:
        return route.failed()
    if queue.broker_name not in route.value:
        return _absent(queue)
    reader = _Reader(source, (queue.broker_name,))
    reader.found.messages = await reader.read(queue, offset, offset + count)
    return Answer(reader.found)


async def message_at(source: ClusterSource, queue: MessageQueue, offset: int) -> Answer[MessageExt]:
    """Return the message at an offset of a queue."""
    route = await source.masters(queue.topic)
    if route.value is None:
        return route.failed()
    if queue.broker_name not in route.value:
        return _absent(queue)
    return await source.ask(
        source.admin.messages.message_at(queue, offset), server=f"Broker {queue.broker_name}"
    )


def _absent(queue: MessageQueue) -> Answer[Any]:
    problem = f"broker {queue.broker_name} does not serve topic {queue.topic}"
    return Answer(None, problem, ResponseCode.TOPIC_NOT_EXIST)


async def _query(
    source: ClusterSource, topic: str, key: str, *, is_unique_key: bool
) -> Answer[FoundMessages]:
    masters = await source.masters(topic)
    if masters.value is None:
        return masters.failed()
    answers = await source.ask_each(
        masters.value.items(),
        lambda place: source.admin.messages.query_message_at(*place, topic, key, is_unique_key=is_unique_key),
    )
    found = FoundMessages()
    for (name, _), answer in answers.items():
        if answer.value is not None:
            found.messages += answer.value
        elif answer.code != ResponseCode.TOPIC_NOT_EXIST:
            found.problems[name] = answer.problem or ""
    found.messages.sort(key=_age, reverse=True)
    return Answer(found)


def _age(message: MessageExt) -> tuple[int, str, int]:
    # Messages of one millisecond are in the order of their broker's log.
    return message.store_timestamp, message.broker_name, message.commit_log_offset
