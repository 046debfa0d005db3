"""Transactions: an order is announced if, and only if, its payment in a local database succeeded.

The first producer stops after it has paid an order, but before it commits the transaction. The broker then
checks the transaction with another producer of the group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import (
    ConsumeConcurrentlyStatus,
    LocalCluster,
    LocalTransactionState,
    Message,
    MessageExt,
)

# All waits are 50 times shorter: the broker checks every 1.2 s instead of 60, and only half messages that are
# older than 0.12 s instead of 6.
TIME_SCALE = 0.02


class Payments:
    """The transaction listener; ``paid`` stands for a table that every producer of the group can read."""

    def __init__(self, paid: dict[str, bool], *, silent_about: str = "") -> None:
        self.paid = paid
        self.silent_about = silent_about

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        order = message.body.decode()
        self.paid[order] = order != "order-2"
        if order == self.silent_about:
            return LocalTransactionState.UNKNOW
        return self.state_of(order)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        print("the broker checks the transaction of", message.body.decode())
        return self.state_of(message.body.decode())

    def state_of(self, order: str) -> LocalTransactionState:
        if order not in self.paid:
            return LocalTransactionState.UNKNOW
        if self.paid[order]:
            return LocalTransactionState.COMMIT_MESSAGE
        return LocalTransactionState.ROLLBACK_MESSAGE


async def main() -> None:
    paid: dict[str, bool] = {}
    announced: list[str] = []
    all_announced = asyncio.Event()

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        announced.extend(message.body.decode() for message in messages)
        if len(announced) == 2:
            all_announced.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster:
        first = cluster.transaction_producer("shop", listener=Payments(paid, silent_about="order-3"))
        async with first:
            for order in ("order-1", "order-2", "order-3"):
                result = await first.send_message_in_transaction(Message("Orders", order.encode()))
                print(order, "->", result.local_transaction_state)
        # The first producer has stopped. Order 3 is paid, but its transaction is neither committed nor rolled
        # back.
        consumer = cluster.push_consumer(
            "accounting",
            consume_from="first",
        )
        consumer.subscribe("Orders")
        consumer.register_message_listener(listener)
        second = cluster.transaction_producer("shop", listener=Payments(paid))
        async with consumer, second:
            await asyncio.wait_for(all_announced.wait(), 60)
    print("announced:", ", ".join(sorted(announced)))
    assert sorted(announced) == ["order-1", "order-3"]


if __name__ == "__main__":
    asyncio.run(main())
