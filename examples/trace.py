"""Message trace: find an order by its key and by its message id, and show who sent and who consumed it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import (
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
)


async def main() -> None:
    async with LocalCluster(brokers=1) as cluster:
        shipped = asyncio.Event()

        async def ship(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            shipped.set()
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer = cluster.push_consumer(
            "shipping",
            consume_from="first",
            enable_msg_trace=True,
        )
        consumer.subscribe("Orders")
        consumer.register_message_listener(ship)
        async with cluster.producer("counter", enable_msg_trace=True) as producer:
            sent = await producer.send(Message("Orders", b"two lamps", keys="order-7"))
        async with consumer:
            await asyncio.wait_for(shipped.wait(), 60)
        # A client sends its last trace records before it stops.

        async with cluster.admin() as admin:
            [by_key] = await admin.messages.query_message("Orders", "order-7")
            [by_id] = await admin.messages.query_message_by_unique_key("Orders", sent.msg_id)
            by_place = await admin.messages.message_at(sent.message_queue, sent.queue_offset)
            assert by_key.body == by_id.body == by_place.body == b"two lamps"
            steps = await admin.messages.query_message_trace(sent.msg_id)
        for step in steps:
            print(f"{step.kind:<4} {step.group:<9} {step.client_host:<10} {step.cost_time} ms  {step.status}")
        assert [(step.kind, step.group, step.status) for step in steps] == [
            ("Pub", "counter", "success"),
            ("Sub", "shipping", "success"),
        ]


if __name__ == "__main__":
    asyncio.run(main())
