"""The threads that plain listeners and flushes run on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from rewindmq.protocol.remoting.workers import ThreadWorkers


@pytest.fixture
def workers() -> Iterator[ThreadWorkers]:
    pool = ThreadWorkers(max_workers=2)
    yield pool
    pool.close()


async def test_results_and_errors_come_back(workers: ThreadWorkers) -> None:
    assert await workers.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await workers.run(divmod, 7, 0)


async def test_stop_iteration_comes_back_as_an_error_a_future_can_hold(workers: ThreadWorkers) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await workers.run(next, iter(()))


async def test_no_more_calls_at_a_time_than_threads(workers: ThreadWorkers) -> None:
    together = threading.Barrier(2)
    running: set[str] = set()

    def meet() -> str:
        together.wait(60)
        running.add(threading.current_thread().name)
        return threading.current_thread().name

    names = await asyncio.gather(*(workers.run(meet) for _ in range(6)))

    assert len(names) == 6
    assert len(running) == 2


async def test_an_idle_thread_is_used_again(workers: ThreadWorkers) -> None:
    names = {await workers.run(lambda: threading.current_thread().name) for _ in range(5)}

    assert len(names) == 1


async def test_a_cancelled_call_that_has_not_begun_is_left_out(workers: ThreadWorkers) -> None:
    release = threading.Event()
    blocked = [asyncio.ensure_future(workers.run(release.wait, 60)) for _ in range(2)]
    called: list[int] = []
    waiting = asyncio.ensure_future(workers.run(called.append, 1))

    waiting.cancel()
    release.set()

    assert await asyncio.gather(*blocked) == [True, True]
    assert await workers.run(list, called) == []


async def test_idle_threads_have_ended_when_the_workers_are_closed(workers: ThreadWorkers) -> None:
    threads: list[threading.Thread] = []
    together = threading.Barrier(2)

    def meet() -> None:
        threads.append(threading.current_thread())
        together.wait(60)

    await asyncio.gather(workers.run(meet), workers.run(meet))

    workers.close()

    assert len(threads) == 2
    assert not [thread for thread in threads if thread.is_alive()]


async def test_neither_closing_nor_a_new_call_waits_for_one_that_blocks(workers: ThreadWorkers) -> None:
    """One thread blocks and one is idle: the new call gets a thread that does not end."""
    release = threading.Event()
    blocked = asyncio.ensure_future(workers.run(release.wait, 60))
    await workers.run(len, "idle")

    workers.close()

    assert await workers.run(len, "new") == 3
    workers.close()
    assert not blocked.done()
    release.set()
    assert await blocked


async def test_calls_given_before_the_close_are_run(workers: ThreadWorkers) -> None:
    calls = [asyncio.ensure_future(workers.run(len, "x" * number)) for number in range(20)]

    workers.close()

    assert await asyncio.gather(*calls) == list(range(20))
