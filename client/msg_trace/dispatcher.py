"""Sends trace records in the background (RocketMQ 4.9.4 ``AsyncTraceDispatcher``).

The application neither waits for it nor sees its failures. Records that do not fit into the buffer, or whose
send fails, are counted and discarded.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from rewindmq.client.msg_trace.records import TraceRecord, encode, trace_keys
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message import Message
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.tasks import cancel_tasks, end_tasks

_log = logging.getLogger(__name__)

MAX_WAITING: Final = 1_024
# Time from the first record to the message that carries it.
WAIT_SECONDS: Final = 0.5
SEND_TIMEOUT: Final = 5.0
# Time to send all remaining records at shutdown; Java allows 0.5 s.
FLUSH_SECONDS: Final = 3.0
# Java limits a trace message to 128,000 characters, 10,000 of them for its keys. Here the keys get fewer: all
# properties together may have 32,767 bytes, and a character may take four.
_MAX_CHARACTERS: Final = 118_000
_MAX_KEYS_CHARACTERS: Final = 8_000


class TraceSender(Protocol):
    """The producer that sends the records."""

    async def start(self) -> None: ...

    async def shutdown(self) -> None: ...

    def abort(self) -> None: ...

    async def send(self, message: Message, timeout: float, /) -> object:
        """Send within ``timeout`` seconds, or raise ``RewindMQError``."""


class TraceDispatcher:
    """Sends the records of one producer or consumer to the trace topic.

    Args:
        producer: sends the records; the dispatcher starts it and shuts it down.
        topic: the trace topic.

    Attributes:
        discarded: number of records that did not fit into the buffer, or whose send failed.
    """

    def __init__(self, runtime: Runtime, producer: TraceSender, topic: str) -> None:
        self.topic = topic
        self.discarded = 0
        self._runtime = runtime
        self._producer = producer
        self._waiting: deque[TraceRecord] = deque()
        self._worker: asyncio.Task[None] | None = None
        # Set by ``shutdown``; from then on only this task sends.
        self._flush: asyncio.Task[None] | None = None
        # True once all new records are discarded.
        self._is_over = False

    async def start(self) -> None:
        """Start the producer; an unreachable name server matters only when records are sent."""
        await self._producer.start()

    async def shutdown(self) -> None:
        """Send the waiting records within ``FLUSH_SECONDS``, and stop."""
        while self._worker is not None:
            worker, self._worker = self._worker, None
            await end_tasks((worker,))
        flush = self._flush = asyncio.get_running_loop().create_task(self._send_all())
        timer = self._runtime.timers.call_timeout(FLUSH_SECONDS, flush.cancel)
        try:
            await asyncio.wait((flush,))
        finally:
            timer.cancel()
        self._discard_waiting()
        await self._producer.shutdown()

    def abort(self) -> None:
        """Stop at once, and discard the waiting records."""
        cancel_tasks(task for task in (self._worker, self._flush) if task is not None)
        self._discard_waiting()
        self._producer.abort()

    def _discard_waiting(self) -> None:
        self._is_over = True
        if self._waiting:
            self._discard(len(self._waiting), "the client stops")
            self._waiting.clear()

    def append(self, records: Sequence[TraceRecord]) -> None:
        """Add records if there is room for all of them, else discard them; never raise, never wait."""
        if self._is_over:
            self._discard(len(records), "the client has stopped")
            return
        if len(self._waiting) + len(records) > MAX_WAITING:
            self._discard(len(records), "the buffer is full")
            return
        self._waiting.extend(records)
        if self._flush is None and (self._worker is None or self._worker.done()):
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            await self._runtime.timers.sleep(WAIT_SECONDS)
            await self._send_all()

    async def _send_all(self) -> None:
        while self._waiting:
            count, message = self._next_message()
            try:
                await self._producer.send(message, SEND_TIMEOUT)
            except RewindMQError as error:
                self._discard(count, str(error))
            for _ in range(count):
                self._waiting.popleft()

    def _next_message(self) -> tuple[int, Message]:
        """Return how many of the oldest records fit into one message, at least one, and that message.

        The records stay in the buffer until they are sent.
        """
        texts: list[str] = []
        keys: dict[str, None] = {}
        size = keys_size = 0
        for record in self._waiting:
            text = encode(record)
            own = [key for key in trace_keys(record) if key not in keys]
            size += len(text)
            keys_size += sum(map(len, own)) + len(own)
            if texts and (size > _MAX_CHARACTERS or keys_size > _MAX_KEYS_CHARACTERS):
                break
            texts.append(text)
            keys.update(dict.fromkeys(own))
        return len(texts), Message(self.topic, "".join(texts).encode(), keys=" ".join(keys))

    def _discard(self, count: int, reason: str) -> None:
        before = self.discarded
        self.discarded += count
        # One line for the first discarded records, then one for every ``MAX_WAITING``.
        if not before or before // MAX_WAITING != self.discarded // MAX_WAITING:
            _log.warning("trace records lost, %d by now: %s", self.discarded, reason)
