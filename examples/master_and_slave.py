"""SYNC_MASTER: a send returns when the slave has the message, and the slave serves it if the master is down.

The slave copies log, topics, groups and offsets of its master. It accepts no sends and never becomes a
master.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    RewindMQError,
    SendStatus,
)

TIME_SCALE = 0.02


class Warehouse:
    """A listener that collects orders."""

    def __init__(self) -> None:
        self.orders: set[bytes] = set()
        self._news = asyncio.Condition()

    async def listen(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self.orders.update(bytes(message.body) for message in messages)
        async with self._news:
            self._news.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def wait_for_orders(self, count: int) -> None:
        """Wait until ``count`` different orders have arrived."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: len(self.orders) >= count)


async def until_copied(admin: AdminClient, master: str, slave: str) -> None:
    """Wait until the slave's log is as long as its master's."""
    async with asyncio.timeout(60):
        while True:
            ends = [
                (await admin.brokers.fetch_broker_runtime_stats(at))["commitLogMaxOffset"]
                for at in (master, slave)
            ]
            if ends[0] == ends[1] != "0":
                return
            await asyncio.sleep(0.05)


async def main() -> None:
    roles = {"brokerRole": "SYNC_MASTER"}
    async with (
        LocalCluster(brokers=1, slaves=1, time_scale=TIME_SCALE, broker_config=roles) as cluster,
        cluster.admin() as admin,
        cluster.producer("shop") as producer,
    ):
        master, slave = cluster.brokers["broker-a"].address, cluster.slaves["broker-a-s1"].address
        # The first message creates the topic, and its copy shows that the slave is connected.
        await producer.send(Message("Orders", b"order 0"))
        await until_copied(admin, master, slave)
        for number in range(1, 20):
            result = await producer.send(Message("Orders", b"order %d" % number))
            assert result.status is SendStatus.SEND_OK
        print("20 orders sent; the slave had each of them before its send returned")

        # The slave fetches topics and offsets every 10 s, which are 0.2 s here.
        await asyncio.sleep(15 * TIME_SCALE)
        await cluster.kill("broker-a")
        print("the master is dead")
        warehouse = Warehouse()
        consumer = cluster.push_consumer(
            "warehouse",
            consume_from="first",
        )
        consumer.subscribe("Orders")
        consumer.register_message_listener(warehouse.listen)
        async with consumer:
            await warehouse.wait_for_orders(20)
            print("the warehouse received all 20 orders from the slave")
            try:
                await producer.send(Message("Orders", b"too late"))
            except RewindMQError as error:
                print("no broker accepts an order now:", type(error).__name__)
            else:
                raise AssertionError("a slave accepted a message")

        await cluster.restart("broker-a")
        # Clients refresh routes every 30 s.
        await asyncio.sleep(60 * TIME_SCALE)
        await producer.send(Message("Orders", b"order 20"))
        await until_copied(admin, master, slave)
        print("the master runs again, and the slave copies from it")


if __name__ == "__main__":
    asyncio.run(main())
