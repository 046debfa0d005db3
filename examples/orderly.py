"""Orderly consumption: all steps of an order go to one queue, whose messages are consumed in order.

A step that fails suspends its queue until it succeeds. Other queues continue meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from rewindmq import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    select_queue_by_hash,
)

TIME_SCALE = 0.02
ORDERS = 20
STEPS = ("created", "paid", "packed", "sent")


class Warehouse:
    """A listener that records steps; the payment of order 7 fails twice before it succeeds."""

    def __init__(self) -> None:
        self.steps: dict[str, list[str]] = defaultdict(list)
        self.failures = 0
        self.done = asyncio.Event()

    async def listen(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        for message in messages:
            order, step = message.body.decode().split()
            if (order, step) == ("7", "paid") and message.reconsume_times < 2:
                self.failures += 1
                context.suspend_current_queue_time_millis = 500
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            self.steps[order].append(step)
        if sum(map(len, self.steps.values())) == ORDERS * len(STEPS):
            self.done.set()
        return ConsumeOrderlyStatus.SUCCESS


async def main() -> None:
    async with (
        LocalCluster(brokers=2, time_scale=TIME_SCALE) as cluster,
        cluster.producer("shop") as producer,
    ):
        for step in STEPS:
            for order in range(ORDERS):
                message = Message("Orders", f"{order} {step}".encode())
                await producer.send_with_selector(message, select_queue_by_hash, order)
        warehouse = Warehouse()
        consumer = cluster.push_consumer(
            "warehouse",
            consume_from="first",
        )
        consumer.subscribe("Orders")
        consumer.register_orderly_listener(warehouse.listen)
        async with consumer:
            await asyncio.wait_for(warehouse.done.wait(), 60)
        assert all(tuple(steps) == STEPS for steps in warehouse.steps.values())
        assert warehouse.failures == 2
        print(f"{ORDERS} orders, each {' -> '.join(STEPS)}, over 8 queues of 2 brokers")
        print(f"order 7 failed {warehouse.failures} times, and its steps are still in order")


if __name__ == "__main__":
    asyncio.run(main())
