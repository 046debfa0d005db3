"""The waits of a group let its consumers act at once: virtual time shows that they wait for no timer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rewindmq import MessageExt
from rewindmq.testing import Outcome, Rmq
from tests.testing.simulation.bodies import simulation

# Virtual seconds from the start of a consumer: it first stores its offsets, and first asks for routes again.
FIRST_PERSIST = 10.0
FIRST_REFRESH = 30.0
# From a first failure to the redelivery.
FIRST_RETRY = 10.0


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("is_orderly", [False, True])
def test_caught_up_and_stored_do_not_wait_for_the_timer_that_stores_offsets(is_orderly: bool) -> None:
    async def body(rmq: Rmq) -> None:
        topic = await rmq.topic("orders")
        await topic.send_many(range(10))
        make = rmq.orderly if is_orderly else rmq.push
        async with make("billing", topic) as billing:
            await billing.caught_up()
            assert sum((await billing.offsets()).values()) == 10
            await topic.send_many(range(10))
            await billing.received_count(20)
            assert sum((await billing.stored()).values()) == 20
            assert now() < FIRST_PERSIST

    simulation(body, latency=0.05).check(range(5))


def test_caught_up_stores_the_same_offsets_again_after_a_reset() -> None:
    """The broker accepts them because other deliveries led to them."""

    async def body(rmq: Rmq) -> None:
        topic = await rmq.topic("orders", queues=1)
        await topic.send_many(range(5))
        async with rmq.push("billing", topic) as billing:
            await billing.caught_up()
            reset = await billing.reset(to="begin")
            await reset.redelivered()
            before = now()
            await billing.caught_up()
            assert now() - before < 2.0
            assert set((await billing.offsets()).values()) == {5}

    simulation(body, latency=0.05).check(range(10))


def test_caught_up_does_not_wait_until_consumers_ask_for_routes_again() -> None:
    """The first failure of a new group leads to a retry topic that its consumers do not know yet."""
    failures = [ConnectionError("the bank does not answer")]

    def fails_once(messages: Sequence[MessageExt]) -> None:
        if failures:
            raise failures.pop()

    async def body(rmq: Rmq) -> None:
        failures[:] = [ConnectionError("the bank does not answer")]
        topic = await rmq.topic("orders", queues=1)
        await topic.send(b"x")
        async with rmq.push("billing", topic, fails_once) as billing:
            await billing.caught_up()
            assert [each.outcome for each in billing.deliveries] == [Outcome.FAILED, Outcome.SUCCEEDED]
            assert FIRST_RETRY < now() < FIRST_REFRESH

    simulation(body, latency=0.05).check(range(5))


def test_dead_letters_do_not_wait_until_consumers_ask_for_routes_again() -> None:
    def fails(messages: Sequence[MessageExt]) -> None:
        raise ValueError("no order")

    async def body(rmq: Rmq) -> None:
        topic = await rmq.topic("orders", queues=1)
        sent = await topic.send(b"x")
        async with rmq.push("billing", topic, fails, max_reconsume_times=1) as billing:
            assert await billing.dead_letters() == [sent]
            assert FIRST_RETRY < now() < FIRST_REFRESH

    simulation(body, latency=0.05).check(range(5))
