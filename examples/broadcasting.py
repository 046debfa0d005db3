"""Prices go to every shop: each member of a broadcasting group gets every message, and keeps its own offsets.

A shop that was closed goes on from its own file; a reset at the broker does not concern any of them.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rewindmq import (
    AsyncLocalCluster,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    ResponseError,
)

TIME_SCALE = 0.02


class Shop:
    """Remembers the latest price of each article, and how many prices it was told."""

    def __init__(self, name: str, cluster: AsyncLocalCluster, folder: Path) -> None:
        self.prices: dict[str, str] = {}
        self.told = 0
        self._news = asyncio.Condition()
        self.consumer = cluster.push_consumer(
            "shops",
            # The name of the instance is part of the file's path: the same shop finds its offsets again.
            instance_name=name,
            message_model="broadcasting",
            consume_from="first",
            offset_root=folder,
        )
        self.consumer.subscribe("Prices")
        self.consumer.register_message_listener(self.listen)

    async def listen(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            article, price = message.body.decode().split()
            self.prices[article] = price
            self.told += 1
        async with self._news:
            self._news.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def heard(self, count: int) -> None:
        """Wait until it was told so many prices."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: self.told >= count)


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with (
            LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster,
            cluster.producer("head-office") as producer,
            cluster.admin() as admin,
        ):
            await producer.send(Message("Prices", b"tea 3"))
            await producer.send(Message("Prices", b"milk 2"))
            north, south = (Shop(name, cluster, Path(directory)) for name in ("north", "south"))
            async with north.consumer:
                async with south.consumer:
                    await asyncio.gather(north.heard(2), south.heard(2))
                print("two shops, two prices, each shop was told both")
                await producer.send(Message("Prices", b"tea 4"))
                await north.heard(3)
                again = Shop("south", cluster, Path(directory))
                async with again.consumer:
                    await again.heard(1)
                    assert again.prices == {"tea": "4"}
                    print("the shop that was closed heard of the price it had missed, and of no other")
                    try:
                        await admin.reset_offset_by_timestamp("Prices", "shops", 0, True)
                    except ResponseError as error:
                        print(f"a reset is refused, the broker holds no offsets: {error.remark}")


if __name__ == "__main__":
    asyncio.run(main())
