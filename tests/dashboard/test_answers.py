"""The time limit of a question is for the server, not for what the dashboard does with the answer."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from dataclasses import replace

from rewindmq import AdminClient
from rewindmq.dashboard.data.answer import LIMIT_SECONDS, Answer
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.race.sim import World
from rewindmq.race.sim.world import InlineWorkers
from tests.dashboard.scripted import Answering, scripted, silent, success

MANY = ConsumeStats({MessageQueue("t", "b", number): OffsetWrapper(9, 4, 1) for number in range(5_000)})


class SlowWorkers(InlineWorkers):
    """Threads that need longer than a server may."""

    def _late(self, function: Callable[..., object]) -> float:
        return 2 * LIMIT_SECONDS


def _asked(answer: Answering) -> tuple[Answer[ConsumeStats], float]:
    """Ask under virtual time; return the answer, and the seconds that passed."""
    world = World()

    async def main() -> tuple[Answer[ConsumeStats], float]:
        runtime = replace(world.runtime("d"), workers=SlowWorkers())
        async with (
            scripted(world.runtime("b"), "b", {RequestCode.GET_CONSUME_STATS: answer}) as broker,
            AdminClient("n:1", runtime=runtime) as admin,
        ):
            source, began = ClusterSource(admin), world.now
            return await source.ask(admin.groups.broker_group_stats(broker.address, "g")), world.now - began

    return world.run(main())


def test_an_answer_that_takes_long_to_decode_is_an_answer() -> None:
    answer, seconds = _asked(lambda _, request: success(MANY))
    assert answer.value == MANY
    assert seconds > LIMIT_SECONDS


def test_a_broker_without_an_answer_is_named_at_the_time_limit() -> None:
    answer, seconds = _asked(silent)
    assert answer.problem == "no answer within 2 s"
    assert LIMIT_SECONDS <= seconds < LIMIT_SECONDS + 0.5


async def test_a_visitor_who_leaves_ends_the_question() -> None:
    """The task of a question ends with its page."""
    asked = asyncio.get_running_loop().create_future()
    async with AdminClient("127.0.0.1:1") as admin:
        page = asyncio.ensure_future(ClusterSource(admin).ask(asked))
        await asyncio.sleep(0)
        page.cancel()
        await asyncio.wait((page,))
    assert asked.cancelled()


def test_a_visitor_who_leaves_while_an_answer_is_decoded_ends_the_question() -> None:
    world = World()

    async def main() -> None:
        runtime = replace(world.runtime("d"), workers=SlowWorkers())
        answers: dict[int, Answering] = {RequestCode.GET_CONSUME_STATS: lambda _, request: success(MANY)}
        async with (
            scripted(world.runtime("b"), "b", answers) as broker,
            AdminClient("n:1", runtime=runtime) as admin,
        ):
            question = asyncio.ensure_future(admin.groups.broker_group_stats(broker.address, "g"))
            page = asyncio.ensure_future(ClusterSource(admin).ask(question))
            await world.sleep(1.5 * LIMIT_SECONDS)
            assert not question.done()
            page.cancel()
            await asyncio.wait((page, question))
            assert (page.cancelled(), question.cancelled()) == (True, True)

    world.run(main())


async def test_an_answer_is_freed_with_its_last_reference() -> None:
    """A scrape's answers must not wait for the garbage collector, which would hold the event loop."""

    class Value:
        pass

    async def work() -> Value:
        return Value()

    async with AdminClient("127.0.0.1:1") as admin:
        gc.disable()
        try:
            answer = await ClusterSource(admin).ask(work())
            reference = weakref.ref(answer.value)
            assert reference() is not None
            del answer
            assert reference() is None
        finally:
            gc.enable()
