"""A scrape's questions to one broker are bounded in number, in time and at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rewindmq import AdminClient
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.metrics.questions import AT_ONCE, MAX_QUESTIONS, Questions
from rewindmq.protocol.errors import (
    BodyError,
    FrameError,
    HeaderError,
    RemotingError,
    ResponseError,
    RewindMQError,
)
from rewindmq.protocol.message.record import RecordError


@pytest.fixture
async def source() -> AsyncIterator[ClusterSource]:
    async with AdminClient("127.0.0.1:1") as admin:
        yield ClusterSource(admin)


def endless(source: ClusterSource) -> Questions:
    return Questions(source, source.runtime.clock.monotonic() + 3600)


async def test_so_many_are_asked_and_so_many_at_once(source: ClusterSource) -> None:
    questions = endless(source)
    asked = running = most = 0

    async def work(key: int) -> int:
        nonlocal asked, running, most
        asked += 1
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return key

    answers = await questions.ask_each(range(MAX_QUESTIONS + 5), work)
    assert answers == {key: key for key in range(MAX_QUESTIONS)}
    assert (asked, most, questions.unanswered) == (MAX_QUESTIONS, AT_ONCE, 5)
    assert not questions.is_silent


async def test_after_its_time_a_scrape_asks_nothing(source: ClusterSource) -> None:
    questions = Questions(source, source.runtime.clock.monotonic() - 1)

    async def work() -> int:
        raise AssertionError("asked")

    assert await questions.ask(work) is None
    assert (questions.unanswered, questions.is_silent) == (1, False)


async def test_after_a_question_without_an_answer_a_broker_is_asked_nothing(source: ClusterSource) -> None:
    questions = endless(source)
    asked = []

    async def work(key: int) -> int:
        asked.append(key)
        raise RemotingError("no connection")

    assert await questions.ask_each((1,), work) == {}
    assert await questions.ask_each((2, 3), work) == {}
    assert (asked, questions.unanswered, questions.is_silent) == ([1], 3, True)


@pytest.mark.parametrize(
    "error",
    [BodyError("JSON body: x"), HeaderError("ext fields: x"), RecordError("cut short"), FrameError("x")],
)
async def test_an_answer_that_cannot_be_read_is_counted_and_is_no_silence(
    source: ClusterSource, error: RewindMQError
) -> None:
    questions = endless(source)

    async def work(key: int) -> int:
        if key == 1:
            raise error
        return key

    assert await questions.ask_each((1, 2), work) == {2: 2}
    assert (questions.unreadable, questions.unanswered, questions.is_silent) == (1, 0, False)


async def test_a_refusal_is_an_answer(source: ClusterSource) -> None:
    questions = endless(source)

    async def work(key: int) -> int:
        if key == 1:
            raise ResponseError(1, "not counted yet")
        return key

    assert await questions.ask_each((1, 2), work) == {2: 2}
    assert (questions.unanswered, questions.is_silent) == (0, False)
