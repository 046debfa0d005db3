"""The callback slots of a client instance (docs/spec/client.md C.4)."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq import PushConsumer
from rewindmq.client.core.callback_pool import CallbackPool
from rewindmq.protocol.errors import ClientError


async def test_callbacks_run_at_once_while_a_slot_is_free_and_in_turn_when_none_is() -> None:
    pool = CallbackPool(2)
    ran: list[str] = []
    pool.run(lambda: ran.append("at once"))
    assert ran == ["at once"]

    def is_exhausted() -> bool:
        return pool.is_exhausted

    async with pool.slot():
        pool.run(lambda: ran.append("beside one"))
        assert not is_exhausted()
        async with pool.slot():
            assert is_exhausted()
            pool.run(lambda: ran.append("first"))
            pool.run(lambda: ran.append("second"))
            assert ran == ["at once", "beside one"]
        assert ran[2:] == ["first", "second"]


async def test_a_waiter_gets_a_slot_before_later_callbacks() -> None:
    pool = CallbackPool(1)
    steps: list[str] = []

    async def holder(name: str, release: asyncio.Event) -> None:
        async with pool.slot():
            steps.append(name)
            await release.wait()

    first, second = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(holder("a", first))
        tasks.create_task(holder("b", second))
        await asyncio.sleep(0)
        pool.run(lambda: steps.append("callback"))
        first.set()
        for _ in range(3):
            await asyncio.sleep(0)
        assert steps == ["a", "b"]
        second.set()
    assert steps == ["a", "b", "callback"]
    assert not pool.is_exhausted


@pytest.mark.parametrize("granted", [False, True])
async def test_a_waiter_that_gives_up_leaves_the_slot_to_others(granted: bool) -> None:
    pool = CallbackPool(1)

    async def wait() -> None:
        async with pool.slot():
            raise AssertionError("it was cancelled")

    async with pool.slot():
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        if not granted:
            waiting.cancel()
            await asyncio.sleep(0)
    # The slot is granted in this turn of the event loop.
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not pool.is_exhausted
    async with pool.slot():
        assert pool.is_exhausted


def test_a_client_needs_a_callback_thread() -> None:
    with pytest.raises(ClientError, match="client_callback_executor_threads must be at least 1"):
        PushConsumer("G", "127.0.0.1:9876", client_callback_executor_threads=0)
