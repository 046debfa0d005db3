"""Which runtime a client gets, and that no thread outlives the clients that used it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rewindmq import AdminClient, ClientError, Producer
from rewindmq.race.sim import World

ADDRESS = "127.0.0.1:1"


def test_clients_of_one_time_scale_share_a_runtime() -> None:
    admin, producer = AdminClient(ADDRESS, time_scale=0.05), Producer("P", ADDRESS, time_scale=0.05)
    assert admin.runtime is producer.runtime
    assert admin.runtime.clock.scale == 0.05
    assert AdminClient(ADDRESS).runtime is Producer("P", ADDRESS, time_scale=1).runtime
    assert AdminClient(ADDRESS).runtime is not admin.runtime


def test_a_seed_gives_a_runtime_of_its_own() -> None:
    one, other = (AdminClient(ADDRESS, seed=7) for _ in range(2))
    assert one.runtime is not other.runtime
    assert one.runtime.random.random() == other.runtime.random.random()


@pytest.mark.parametrize("options", [{"time_scale": 1.0}, {"seed": 7}])
def test_a_runtime_goes_with_no_time_scale_and_no_seed(options: dict[str, Any]) -> None:
    with pytest.raises(ClientError, match="give it alone"):
        AdminClient(ADDRESS, runtime=World().runtime(), **options)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), "fast"])
def test_a_time_scale_is_a_number_above_0(scale: Any) -> None:
    with pytest.raises(ClientError, match="time_scale must be a number greater than 0"):
        AdminClient(ADDRESS, time_scale=scale)


async def first_choices(count: int) -> list[float]:
    """Return the first random choices of clients that share a seed and run together."""
    clients = [AdminClient(ADDRESS, seed=7) for _ in range(count)]
    for client in clients:
        await client.start()
    chosen = [client.runtime.random.random() for client in clients]
    for client in clients:
        await client.shutdown()
    return chosen


async def test_clients_of_one_seed_that_run_together_differ_and_their_choices_are_repeated() -> None:
    first = await first_choices(3)
    assert len(set(first)) == 3
    assert await first_choices(3) == first


async def test_clients_of_one_seed_have_different_client_ids() -> None:
    async with Producer("P", ADDRESS, seed=7) as one, Producer("P", ADDRESS, seed=7) as other:
        assert one.client_id != other.client_id


@pytest.mark.parametrize("seed", [None, 7])
async def test_the_threads_end_with_the_last_client(seed: int | None) -> None:
    admin = AdminClient(ADDRESS, time_scale=0.5, seed=seed)
    producer = Producer("P", ADDRESS, time_scale=0.5, seed=seed)
    await admin.start()
    await producer.start()
    threads = [await client.runtime.workers.run(threading.current_thread) for client in (admin, producer)]

    await admin.shutdown()
    await admin.shutdown()
    assert threads[1].is_alive()
    await producer.shutdown()
    assert not [thread for thread in threads if thread.is_alive()]

    async with AdminClient(ADDRESS, time_scale=0.5, seed=seed) as again:
        assert await again.runtime.workers.run(len, "used again") == 10


async def test_a_start_that_fails_keeps_no_threads() -> None:
    producer = Producer("P", ADDRESS, time_scale=0.25, instance_name="one")
    twin = Producer("P", ADDRESS, time_scale=0.25, instance_name="one")
    await producer.start()
    thread = await producer.runtime.workers.run(threading.current_thread)
    with pytest.raises(ClientError, match="has been created before"):
        await twin.start()
    await producer.shutdown()
    assert not thread.is_alive()


async def test_a_client_that_is_aborted_keeps_no_threads() -> None:
    producer = Producer("P", ADDRESS, time_scale=0.125)
    await producer.start()
    thread = await producer.runtime.workers.run(threading.current_thread)
    producer.abort()
    assert not thread.is_alive()


async def test_the_threads_of_a_runtime_that_was_given_are_left_alone() -> None:
    runtime = AdminClient(ADDRESS, seed=1).runtime
    async with AdminClient(ADDRESS, runtime=runtime):
        thread = await runtime.workers.run(threading.current_thread)
    assert thread.is_alive()
    runtime.workers.close()
