"""A full disk and time that passes, in simulated tests."""

from __future__ import annotations

import pytest

from rewindmq import Message, RewindMQError
from rewindmq.testing import KitError, Rmq
from tests.testing.simulation.bodies import simulation


async def fill_the_disk(rmq: Rmq) -> None:
    orders = await rmq.topic("orders", queues=1)
    async with rmq.producer() as producer:
        await producer.send(Message(orders.name, b"first"))
        async with rmq.disk_full("broker-a"):
            async with rmq.down("broker-a"):
                pass
            with pytest.raises(RewindMQError, match="disk is full"):
                await producer.send(Message(orders.name, b"refused"))
        await producer.send(Message(orders.name, b"after"))
    assert [message.body for message in await orders.read()] == [b"first", b"after"]


async def travel_to_a_delayed_message(rmq: Rmq) -> None:
    orders = await rmq.topic("orders", queues=1)
    await orders.send(b"later", delay_level=6)
    await rmq.travel(115)
    assert await orders.read() == []
    await rmq.travel(6)
    assert [message.body for message in await orders.read()] == [b"later"]


async def use_wrong_names(rmq: Rmq) -> None:
    with pytest.raises(KitError, match="the cluster has no broker 'broker-z'; brokers: broker-a"):
        await rmq.disk_full("broker-z").__aenter__()
    await rmq.kill("broker-a")
    with pytest.raises(KitError, match="broker-a is not running"):
        await rmq.disk_full("broker-a").__aenter__()


def test_a_broker_with_a_full_disk_refuses_messages() -> None:
    simulation(fill_the_disk).check(range(3))


def test_a_delayed_message_is_due_after_the_travel() -> None:
    simulation(travel_to_a_delayed_message).check(range(3))


def test_wrong_names_are_clear_errors() -> None:
    simulation(use_wrong_names).check(range(1))


def test_a_travel_beyond_the_limit_of_the_test_says_so() -> None:
    async def body(rmq: Rmq) -> None:
        await rmq.travel(700)

    with pytest.raises(KitError, match="not ended after 600 virtual seconds"):
        simulation(body).check(range(1))
