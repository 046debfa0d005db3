"""SQL92 filters: two shops subscribe to one topic, each with its own condition, and the broker filters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import (
    AsyncLocalCluster,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    MessageSelector,
    ResponseError,
)

CHEAP_IN_EUROPE = "price BETWEEN 1 AND 9 AND region IN ('de', 'fr')"
NO_TOYS = "kind <> 'toy' AND price IS NOT NULL"
OFFERS = [
    ("lamp", {"price": "8", "region": "de", "kind": "home"}),
    ("robot", {"price": "5", "region": "fr", "kind": "toy"}),
    ("sofa", {"price": "900", "region": "de", "kind": "home"}),
    ("mug", {"price": "4", "region": "us", "kind": "home"}),
    # A comparison with a number is false if the property is not a number.
    ("book", {"price": "on request", "region": "de", "kind": "book"}),
    ("poster", {"region": "fr", "kind": "home"}),
]


class Shop:
    """A consumer that collects the offers that match its condition."""

    def __init__(self, name: str, condition: str, cluster: AsyncLocalCluster) -> None:
        self.offers: set[str] = set()
        self._news = asyncio.Condition()
        self.consumer = cluster.push_consumer(name, consume_from="first")
        self.consumer.subscribe("Offers", MessageSelector.by_sql(condition))
        self.consumer.register_message_listener(self.listen)

    async def listen(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        async with self._news:
            self.offers.update(message.body.decode() for message in messages)
            self._news.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def collected(self, count: int) -> set[str]:
        """Wait until the shop has ``count`` offers, and return them."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: len(self.offers) >= count)
        return self.offers


async def main() -> None:
    async with LocalCluster(brokers=1) as cluster:
        async with cluster.producer("sellers") as producer:
            for name, properties in OFFERS:
                await producer.send(Message("Offers", name.encode(), properties=properties))
        europe = Shop("europe", CHEAP_IN_EUROPE, cluster)
        serious = Shop("serious", NO_TOYS, cluster)
        async with europe.consumer, serious.consumer:
            print("cheap in Europe:", sorted(await europe.collected(2)))
            print("no toys:        ", sorted(await serious.collected(4)))
        assert europe.offers == {"lamp", "robot"}
        assert serious.offers == {"lamp", "sofa", "mug", "book"}

        # A pull consumer uses the same conditions; the broker skips the other messages here, too.
        async with cluster.pull_consumer("browser") as browser:
            dear = [
                message.body.decode()
                async for message in browser.replay("Offers", 0, 2**62, MessageSelector.by_sql("price > 100"))
            ]
        print("over 100:       ", dear)
        assert dear == ["sofa"]

        # The broker refuses an invalid condition when the consumer starts.
        code = 0
        typo = Shop("typo", "price > 'cheap'", cluster)
        try:
            await typo.consumer.start()
        except ResponseError as error:
            print("refused:        ", error)
            code = error.code
        assert code == 23


if __name__ == "__main__":
    asyncio.run(main())
