"""Broadcasting: each consumer of the group gets every message and stores its own offsets.

Each shop is a consumer. A shop that was closed continues at the offset in its own file. The broker refuses a
reset, because it stores no offsets of such a group.
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
    """A consumer that stores the latest price of each article, and counts the prices that it received."""

    def __init__(self, name: str, cluster: AsyncLocalCluster, folder: Path) -> None:
        self.prices: dict[str, str] = {}
        self.received = 0
        self._news = asyncio.Condition()
        self.consumer = cluster.push_consumer(
            "shops",
            # The instance's name is part of the file's path, so the same shop finds its offsets again.
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
            self.received += 1
        async with self._news:
            self._news.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def wait_for_prices(self, count: int) -> None:
        """Wait until the shop has received ``count`` prices."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: self.received >= count)


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
                    await asyncio.gather(north.wait_for_prices(2), south.wait_for_prices(2))
                print("two shops, two prices: each shop received both")
                await producer.send(Message("Prices", b"tea 4"))
                await north.wait_for_prices(3)
                again = Shop("south", cluster, Path(directory))
                async with again.consumer:
                    await again.wait_for_prices(1)
                    assert again.prices == {"tea": "4"}
                    print("the shop that was closed received only the price that it had missed")
                    try:
                        await admin.resets.reset("Prices", "shops", 0)
                    except ResponseError as error:
                        print(f"the broker refuses a reset, because it stores no offsets: {error.remark}")


if __name__ == "__main__":
    asyncio.run(main())
