"""Partitions and slow links between the test's clients and the servers."""

import asyncio

import pytest

from rewindmq import Message, RequestTimeoutError, SendResult
from rewindmq.testing import KitError, NotSeenError, Rmq
from rewindmq.testing.clusters.servers import Servers


async def test_a_group_that_is_cut_off_catches_up_after_the_partition(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.push("billing", orders) as billing:
        await orders.send(b"1")
        await billing.caught_up()
        async with wired.partition("broker-a", client="billing"):
            await orders.send(b"2")
            await billing.nothing_more(within=10)
        await billing.caught_up()
        assert [message.body for message in billing.received] == [b"1", b"2"]


async def test_a_partition_of_one_client_leaves_the_others_alone(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer("shop") as shop, wired.producer("other") as other:
        for producer in (shop, other):
            await producer.send(Message(orders.name, b"before"))
        cut = await wired.partition("broker-a", client="shop")
        with pytest.raises(RequestTimeoutError):
            await shop.send(Message(orders.name, b"late"), timeout=0.2)
        await other.send(Message(orders.name, b"other"))
        cut.heal()
        with pytest.raises(KitError, match=r"rmq.partition\('broker-a', client='shop'\): was healed before"):
            cut.heal()
        await shop.send(Message(orders.name, b"after"))
        # TCP repeats what was sent during the partition.
        bodies = [message.body for message in await orders.read()]
        assert bodies == [b"before", b"before", b"other", b"late", b"after"]


async def test_a_client_that_starts_during_a_partition_is_cut_off_until_it_is_healed(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    await orders.send(b"1")
    await wired.partition("broker-a")
    billing = wired.push("billing", orders)
    starting = asyncio.create_task(billing.start())
    await wired.eventually(lambda: billing.consumers)
    assert not starting.done()
    wired.heal("broker-a")
    await starting
    await billing.caught_up()
    await billing.stop()
    with pytest.raises(KitError, match="no link of broker-a is cut or slow"):
        wired.heal("broker-a")


async def test_a_partition_from_the_name_server_leaves_running_clients_working(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    async with wired.producer() as producer:
        await producer.send(Message(orders.name, b"1"))
        async with wired.partition("namesrv"):
            await producer.send(Message(orders.name, b"2"))


async def test_a_slow_link_delays_requests_and_responses(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    clock = wired.admin.runtime.clock
    async with wired.producer() as producer:
        await producer.send(Message(orders.name, b"1"))
        async with wired.slow_link("broker-a", latency=2, bytes_per_second=10_000):
            begin = clock.monotonic()
            await producer.send(Message(orders.name, bytes(3_000)), timeout=600)
            # The latency of both directions, and 3,000 bytes that are not compressed at that size.
            assert clock.monotonic() - begin >= 4.3


async def test_healing_one_fault_keeps_the_other(wired: Rmq) -> None:
    orders = await wired.topic("orders", queues=1)
    clock = wired.admin.runtime.clock
    async with wired.producer() as producer:
        await producer.send(Message(orders.name, b"1"))
        slow = await wired.slow_link("broker-a", latency=0.1)
        async with wired.partition("broker-a"):
            with pytest.raises(RequestTimeoutError):
                await producer.send(Message(orders.name, b"2"), timeout=0.2)
        assert slow.is_in_force
        begin = clock.monotonic()
        await producer.send(Message(orders.name, b"3"), timeout=600)
        assert clock.monotonic() - begin >= 0.2


async def test_wrong_arguments_are_named(wired: Rmq) -> None:
    with pytest.raises(KitError, match="no server 'broker-b'; servers: namesrv, broker-a"):
        wired.partition("broker-b")
    with pytest.raises(KitError, match="needs latency=, bytes_per_second=, or both"):
        wired.slow_link("broker-a")
    with pytest.raises(KitError, match="latency must be 0 or more"):
        wired.slow_link("broker-a", latency=-1)
    with pytest.raises(KitError, match="bytes_per_second 1 or more"):
        wired.slow_link("broker-a", bytes_per_second=0.5)
    with pytest.raises(KitError, match="no link is cut or slow"):
        wired.heal()


async def test_a_partition_of_a_client_that_never_was_fails(wired: Rmq) -> None:
    with pytest.raises(NotSeenError, match="no client 'bilingg' was started; clients: application"):
        async with wired.partition("broker-a", client="bilingg"):
            pass


async def test_the_end_of_a_test_heals_what_it_cut(kit_cluster: Servers) -> None:
    """A consumer of the test can unregister at its stop, which comes after."""
    sent: list[SendResult] = []
    async with Rmq(kit_cluster, wire=True) as first:
        orders = await first.topic("orders", queues=1)
        shop = first.producer("shop")
        await shop.start()
        await shop.send(Message(orders.name, b"before"))

        async def stop() -> None:
            sent.append(await shop.send(Message(orders.name, b"at the end"), timeout=600))

        first.push("billing", orders).stop = stop  # type: ignore[method-assign]
        await first.partition("broker-a")
    assert len(sent) == 1
