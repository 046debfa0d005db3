"""Ending tasks: all are cancelled at once, and the caller's own cancellation is not swallowed."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.protocol.remoting.tasks import end_tasks


async def for_ever() -> None:
    await asyncio.Event().wait()


async def stubborn(let_go: asyncio.Event) -> None:
    """Continues when it is cancelled."""
    while not let_go.is_set():
        try:
            await let_go.wait()
        except asyncio.CancelledError:
            continue


async def test_every_task_has_ended_when_it_returns() -> None:
    tasks = [asyncio.ensure_future(for_ever()) for _ in range(3)]
    await end_tasks(tasks)
    assert all(task.cancelled() for task in tasks)


async def test_no_tasks_and_ended_ones_are_nothing_to_wait_for() -> None:
    await end_tasks([])
    done = asyncio.ensure_future(asyncio.sleep(0))
    await done
    await end_tasks([done])


async def test_the_task_that_calls_goes_on() -> None:
    async def call() -> str:
        task = asyncio.current_task()
        assert task is not None
        await end_tasks([task, other])
        return "went on"

    other = asyncio.ensure_future(for_ever())
    assert await asyncio.ensure_future(call()) == "went on"
    assert other.cancelled()


async def test_a_caller_that_is_cancelled_does_not_wait_for_a_stubborn_task() -> None:
    let_go = asyncio.Event()
    tasks = [asyncio.ensure_future(work) for work in (stubborn(let_go), for_ever())]
    await asyncio.sleep(0)
    ending = asyncio.ensure_future(end_tasks(tasks))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert not tasks[0].done()
    assert tasks[1].cancelled()
    let_go.set()
    await tasks[0]


async def test_a_failure_stays_in_the_task_for_its_caller() -> None:
    async def fail() -> None:
        try:
            await for_ever()
        finally:
            raise ZeroDivisionError

    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    await end_tasks([task])
    assert isinstance(task.exception(), ZeroDivisionError)
