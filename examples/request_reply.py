"""Requests and replies: a shop asks for prices and gets each answer; an unanswered question times out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import (
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    ReplyTimeoutError,
    create_reply_message,
)

# All waits are 10 times shorter: a consumer finds a new topic and its queues within 5 s instead of 50.
TIME_SCALE = 0.1
PRICES = {"lamp": 21, "table": 140}


async def main() -> None:
    async with LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster:
        answers = cluster.producer("answerers")

        async def quote(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            for message in messages:
                price = PRICES.get(message.body.decode())
                if price is not None:
                    await answers.send(create_reply_message(message, b"%d EUR" % price))
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer = cluster.push_consumer("pricing", consume_from="first")
        consumer.subscribe("Quotes")
        consumer.register_message_listener(quote)
        async with answers, cluster.producer("shop") as shop, consumer:
            # The first request creates the topic, so it waits until the consumer has found the topic.
            for item in PRICES:
                reply = await shop.request(Message("Quotes", item.encode()), timeout=60.0)
                print(f"{item}: {reply.body.decode()}")
                assert reply.body == b"%d EUR" % PRICES[item]
            try:
                await shop.request(Message("Quotes", b"unicorn"), timeout=1.0)
            except ReplyTimeoutError as error:
                print("unicorn:", error)


if __name__ == "__main__":
    asyncio.run(main())
