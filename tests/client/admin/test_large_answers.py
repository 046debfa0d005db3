"""The admin client decodes a large answer in a worker thread."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from rewindmq import AdminClient
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import BodyError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Workers, system_runtime
from tests.dashboard.scripted import Answers, scripted, success

T = TypeVar("T")

MANY = 5_000


class CountingWorkers:
    """Workers that remember on which threads their functions ran."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.threads: set[int] = set()

    def run(self, function: Callable[..., T], *args: Any) -> Awaitable[T]:
        def noted() -> T:
            self.threads.add(threading.get_ident())
            return function(*args)

        return self._workers.run(noted)

    def close(self) -> None:
        self._workers.close()


def _stats(queues: int) -> ConsumeStats:
    return ConsumeStats({MessageQueue("t", "b", number): OffsetWrapper(9, 4, 1) for number in range(queues)})


async def _asked(answer: ConsumeStats) -> tuple[ConsumeStats, set[int]]:
    """Return the answer as the admin client decodes it, and the threads that took part."""
    runtime = system_runtime()
    workers = CountingWorkers(runtime.workers)
    answers: Answers = {RequestCode.GET_CONSUME_STATS: lambda _, request: success(answer)}
    try:
        async with (
            scripted(system_runtime(), "127.0.0.1", answers) as broker,
            AdminClient("127.0.0.1:1", runtime=replace(runtime, workers=workers)) as admin,
        ):
            return await admin.groups.broker_group_stats(broker.address, "g"), workers.threads
    finally:
        workers.close()


async def test_a_large_answer_is_decoded_beside_the_event_loop() -> None:
    decoded, threads = await _asked(_stats(MANY))
    assert decoded == _stats(MANY)
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_small_answer_starts_no_thread() -> None:
    assert await _asked(_stats(10)) == (_stats(10), set())


async def test_a_large_answer_that_cannot_be_read_raises_as_a_small_one_does() -> None:
    for queues in (10, MANY):
        wrong = _stats(queues)
        wrong.consume_tps = "none"  # type: ignore[assignment]
        with pytest.raises(BodyError, match="ConsumeStats"):
            await _asked(wrong)
