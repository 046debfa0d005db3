"""The service that the three remedies repair: it sends one text message for each message of a topic.

Its gateway is down for a while. The service does not notice and acknowledges the messages, whose texts are
lost. New messages arrive during the repair, so that the pause that a remedy causes can be measured.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

from rewindmq import (
    AsyncLocalCluster,
    ConsumeConcurrentlyStatus,
    Message,
    MessageExt,
    Producer,
)

TOPIC = "Sms"
GROUP = "sms-service"
BODY_BYTES = 1_000
TIME_SCALE = 0.1
"""All waits are a tenth as long: the 10 s of a classic reset take 1 s."""

BEFORE, LOST, AFTER = 200, 100, 200
_FRESH_EVERY = 0.2


class SmsService:
    """The consumer, and counts of deliveries and sent texts for each message.

    Attributes:
        is_gateway_up: True if the gateway sends the texts that it gets.
        attempts: message number → number of times that the service handled the message.
        sent: message number → number of texts that were sent for the message.
        carried: bytes of messages that were delivered to the service again.
    """

    def __init__(self, cluster: AsyncLocalCluster, profile: str = "v49") -> None:
        self.is_gateway_up = True
        self.attempts: Counter[int] = Counter()
        self.sent: Counter[int] = Counter()
        self.carried = 0
        # Times at which new messages were handled, in protocol seconds.
        self.fresh_at: list[float] = []
        self.consumer = cluster.push_consumer(
            GROUP,
            profile=profile,
            consume_from="first",
        )
        self.consumer.subscribe(TOPIC)
        self.consumer.register_message_listener(self.listen)

    async def listen(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        """Handle messages. The mistake: success is returned even if the gateway is down."""
        for message in messages:
            if self.handle(number_of(message.body)) > 1:
                self.carried += message.store_size
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    def handle(self, number: int) -> int:
        """Send one text message, and return the number of the attempt, from 1."""
        self.attempts[number] += 1
        if self.is_gateway_up:
            self.sent[number] += 1
        if self.attempts[number] == 1:
            self.fresh_at.append(now())
        return self.attempts[number]

    async def until_handled(self, count: int) -> None:
        """Wait until ``count`` different messages were handled."""
        while len(self.attempts) < count:
            await asyncio.sleep(0.05 * TIME_SCALE)

    @property
    def missing(self) -> set[int]:
        """Numbers of the messages that were handled, but for which no text was sent."""
        return set(self.attempts) - set(self.sent)


def now() -> float:
    """Return protocol seconds, which the cluster's time scale shortens."""
    return time.monotonic() / TIME_SCALE


def number_of(body: bytes) -> int:
    """Return the number of a message, from 0, from its body."""
    return int(body[:8])


class Traffic:
    """The application that sends the topic's messages."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._next = 0
        self._is_over = False

    async def send(self, count: int) -> None:
        """Send the next ``count`` messages."""
        for _ in range(count):
            await self._producer.send(Message(TOPIC, b"%08d" % self._next + b"." * (BODY_BYTES - 8)))
            self._next += 1

    @property
    def total(self) -> int:
        """The number of messages sent so far."""
        return self._next

    async def keep_sending(self) -> None:
        """Send new messages until ``stop`` is called."""
        while not self._is_over:
            await self.send(1)
            await asyncio.sleep(_FRESH_EVERY * TIME_SCALE)

    def stop(self) -> None:
        """End ``keep_sending``."""
        self._is_over = True


async def break_down(service: SmsService, traffic: Traffic) -> tuple[int, int]:
    """Lose ``LOST`` messages between others, and return the start and end time of the outage, ms."""
    await traffic.send(BEFORE)
    await service.until_handled(BEFORE)
    # No message may be stored in the millisecond ``begin``: among several, RocketMQ 4.x finds an arbitrary
    # one.
    await asyncio.sleep(0.02)
    begin = time.time_ns() // 1_000_000
    await asyncio.sleep(0.005)
    service.is_gateway_up = False
    await traffic.send(LOST)
    await service.until_handled(BEFORE + LOST)
    end = time.time_ns() // 1_000_000
    service.is_gateway_up = True
    await asyncio.sleep(0.01)
    await traffic.send(AFTER)
    await service.until_handled(traffic.total)
    assert service.missing == set(range(BEFORE, BEFORE + LOST))
    return begin, end


class Repair:
    """Measures what a remedy costs while new messages arrive: ``async with Repair(...)``."""

    def __init__(self, service: SmsService, traffic: Traffic) -> None:
        self._service = service
        self._traffic = traffic
        self._lost = set(service.missing)
        self.pause = 0.0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._traffic.keep_sending())
        await self._service.until_handled(self._traffic.total + 5)
        self._service.fresh_at[:] = [now()]
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._service.until_handled(self._traffic.total + 5)
        self._traffic.stop()
        await self._task
        await self._service.until_handled(self._traffic.total)
        times = self._service.fresh_at
        self.pause = max(later - earlier for earlier, later in pairwise(times))

    def show(self, remedy: str, *, carried: int, stored: int) -> None:
        """Check that no text is missing, and print the figures.

        Args:
            carried: bytes of messages that the broker delivered again.
            stored: bytes that the application stores for the remedy.
        """
        assert not self._service.missing
        again = sum(count - 1 for count in self._service.attempts.values())
        duplicates = sum(count - 1 for count in self._service.sent.values())
        print(remedy)
        print(f"  lost text messages sent after all          {len(self._lost):>9,}")
        print(f"  messages handled once more                 {again:>9,}")
        print(f"  text messages sent twice                   {duplicates:>9,}")
        print(f"  longest pause of new messages              {self.pause:>9.1f} s")
        print(f"  carried once more by the broker            {carried:>9,} bytes")
        print(f"  kept by the application                    {stored:>9,} bytes")
