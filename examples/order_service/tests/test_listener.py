"""The listener of the service, with the fixture ``rmq`` of RewindMQ's test kit."""

from __future__ import annotations

from collections.abc import Sequence

from order_service import Ledger, Order, OrderListener
from rewindmq import MessageExt
from rewindmq.testing import Rmq


def orders(count: int, first: int = 0) -> list[Order]:
    """Return orders of three customers, 100 cents each."""
    return [Order(number, f"customer-{number % 3}", 100) for number in range(first, first + count)]


async def test_each_order_is_booked(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many(orders(9), key="customer")
    async with rmq.push("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        group.assert_no_errors()
    assert ledger.balances() == {"customer-0": 300, "customer-1": 300, "customer-2": 300}


async def test_an_order_that_was_sent_twice_is_booked_once(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many(orders(3))
    await topic.send_many(orders(3))
    async with rmq.push("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        assert len(group.received) == 6
    assert sum(ledger.balances().values()) == 300


async def test_a_rewind_changes_no_balance(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders", queues=4)
    await topic.send_many(orders(10), key="customer")
    mark = await rmq.mark()
    await topic.send_many(orders(10, first=10), key="customer")
    async with rmq.orderly("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        before = ledger.balances()
        reset = await group.reset(to=mark)
        await reset.redelivered()
        assert reset.delivered == topic.since(mark)
        group.assert_no_errors()
    assert ledger.balances() == before


async def test_a_new_consumer_follows_a_reset_that_the_old_one_missed(rmq: Rmq, ledger: Ledger) -> None:
    """A classic reset would be lost here; the kit's default mode, fenced, keeps it."""
    topic = await rmq.topic("orders")
    await topic.send_many(orders(6))
    async with rmq.push("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        reset = await group.reset(to="begin")
        group.crash()
        await group.add_consumer()
        await reset.redelivered()
    assert sum(ledger.balances().values()) == 600


async def test_the_orders_of_a_customer_stay_in_order(rmq: Rmq, ledger: Ledger) -> None:
    booked: list[Order] = []
    topic = await rmq.topic("orders", queues=4)
    await topic.send_many(orders(12), key="customer")
    async with rmq.orderly("billing", topic, OrderListener(ledger, booked.append)) as group:
        await group.caught_up()
    assert len(booked) == 12
    for customer in {order.customer for order in booked}:
        numbers = [order.number for order in booked if order.customer == customer]
        assert numbers == sorted(numbers)


async def test_an_order_that_fails_once_is_booked_by_the_retry(rmq: Rmq, ledger: Ledger) -> None:
    failures = [ConnectionError("the bank does not answer")]
    listener = OrderListener(ledger)

    def fails_once(messages: Sequence[MessageExt]) -> object:
        if failures:
            raise failures.pop()
        return listener(messages)

    topic = await rmq.topic("orders", queues=1)
    await topic.send(Order(1, "ann", 500))
    async with rmq.push("billing", topic, fails_once) as group:
        await group.caught_up()
        assert len(group.deliveries) == 2
    assert ledger.balances() == {"ann": 500}


async def test_what_is_no_order_becomes_a_dead_letter(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders")
    no_customer = b'{"number": 2, "customer": null, "cents": 5}'
    await topic.send_many([b"no order", no_customer])
    await topic.send(Order(1, "ann", 500))
    async with rmq.push("billing", topic, OrderListener(ledger), max_reconsume_times=1) as group:
        dead = await group.dead_letters(2)
        await group.caught_up()
        assert {letter.body for letter in dead} == {b"no order", no_customer}
        assert group.errors
        assert all("InvalidOrderError" in each.error for each in group.errors)
    assert ledger.balances() == {"ann": 500}


async def test_a_killed_broker_loses_no_order(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many(orders(5))
    async with rmq.push("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        async with rmq.down("broker-a"):
            pass
        await topic.send_many(orders(5, first=5))
        await group.caught_up()
    assert sum(ledger.balances().values()) == 1_000


async def test_orders_flow_while_the_name_server_answers_nothing(rmq: Rmq, ledger: Ledger) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many(orders(5))
    async with rmq.push("billing", topic, OrderListener(ledger)) as group:
        await group.caught_up()
        async with rmq.paused("namesrv"):
            await topic.send_many(orders(5, first=5))
            await group.received_count(10)
        await group.caught_up()
    assert sum(ledger.balances().values()) == 1_000
