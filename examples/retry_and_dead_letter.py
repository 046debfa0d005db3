"""Retries: a message that a listener fails on is redelivered with growing delays, then becomes a dead letter.

The program starts its own cluster, whose delays are shortened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rewindmq import (
    AsyncLocalCluster,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    MessageQueue,
    ReconsumeLater,
    RewindMQError,
)

TOPIC, GROUP = "Orders", "billing"
TIME_SCALE = 0.05


class Billing:
    """A listener that always fails on the order "broken", and once on the order "too soon"."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seen: list[tuple[bytes, int]] = []

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | ReconsumeLater:
        (message,) = messages
        self.seen.append((message.body, message.reconsume_times))
        after = time.monotonic() - self.began
        print(f"{after:4.1f} s  {message.body.decode():8} retry {message.reconsume_times}")
        if message.body == b"broken":
            # The broker chooses the delay, which grows by one level with each retry.
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        if message.body == b"too soon" and message.reconsume_times == 0:
            # The listener chooses the delay: level 1.
            return ReconsumeLater(delay_level=1)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


async def dead_letters(cluster: AsyncLocalCluster) -> list[MessageExt]:
    queue = MessageQueue(f"%DLQ%{GROUP}", "broker-a", 0)
    async with cluster.pull_consumer("readers") as reader:
        for _ in range(200):
            try:
                result = await reader.pull(queue, "*", 0, 32)
            except RewindMQError:
                # The topic does not exist before its first message.
                result = None
            if result is not None and result.messages:
                return list(result.messages)
            await asyncio.sleep(0.1)
    raise TimeoutError("no dead letter arrived")


async def main() -> None:
    # All waits are 20 times shorter: the first retry comes after 0.5 s instead of 10, the next after 1.5 s
    # instead of 30. A new group may find its retry topic at the next route refresh, after 1.5 s instead of
    # 30.
    async with LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster:
        listener = Billing()
        consumer = cluster.push_consumer(
            GROUP,
            max_reconsume_times=2,
            consume_from="first",
        )
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(listener)
        async with cluster.producer("shop") as producer:
            for body in (b"good", b"too soon", b"broken"):
                await producer.send(Message(TOPIC, body))
            async with consumer:
                (dead,) = await dead_letters(cluster)
        print(f"dead letter: {dead.body.decode()} of {dead.properties['RETRY_TOPIC']}")
        assert dead.body == b"broken"
        tries = sorted(retry for body, retry in listener.seen if body == b"broken")
        assert tries == [0, 1, 2], tries
        assert (b"too soon", 1) in listener.seen
        assert listener.seen.count((b"good", 0)) == 1


if __name__ == "__main__":
    asyncio.run(main())
