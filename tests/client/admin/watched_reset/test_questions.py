"""A reset asks the cluster each question once: preview, check and watch pass on what they know."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest

from rewindmq.client.admin.remote import AdminConnections
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.run import Began, run_watched
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.watch.verdict.states import State
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.client.admin.watched_reset.as_at_rocketmq import send_steadily, watch_as_at_rocketmq
from tests.support.fixtures import played
from tests.support.stage import SimStage

pytestmark = pytest.mark.usefixtures("utc")
# What a sample asks; the answers change with every message.
SAMPLED = {
    RequestCode.LIST_REWINDS,
    RequestCode.GET_CONSUMER_CONNECTION_LIST,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
}


@contextlib.contextmanager
def counted(patched: pytest.MonkeyPatch) -> Iterator[Counter[tuple[str, RequestCode, str]]]:
    """Count the requests of admin clients by address, code and header."""
    asked: Counter[tuple[str, RequestCode, str]] = Counter()
    invoke = AdminConnections.invoke

    def count(
        connections: AdminConnections, address: str, command: RemotingCommand, timeout: float = 3.0
    ) -> asyncio.Future[RemotingCommand]:
        asked[address, RequestCode(command.code), repr(command.header)] += 1
        return invoke(connections, address, command, timeout)

    with patched.context() as within:
        within.setattr(AdminConnections, "invoke", count)
        yield asked


def repeated(asked: Counter[tuple[str, RequestCode, str]]) -> dict[tuple[str, RequestCode, str], int]:
    return {question: count for question, count in asked.items() if count > 1}


@pytest.mark.parametrize("target", [0, 1])
@played(brokers=2)
async def test_a_reset_repeats_no_question_of_its_preview(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch, target: int
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(8, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        admin = await stage.admin()
        brokers = Brokers(admin)
        with counted(monkeypatch) as asked:
            preview = await make_preview(admin, TOPIC, GROUP, target, brokers=brokers)
        assert preview.consumers
        assert RequestCode.GET_TOPIC_STATS_INFO in {code for _, code, _ in asked}
        assert repeated(asked) == {}
        known = set(asked)
        with counted(monkeypatch) as asked:
            running = run_watched(admin, TOPIC, GROUP, target, preview=preview, brokers=brokers)
            async with contextlib.aclosing(running) as items:
                assert isinstance(await anext(items), Began)
        again = {code for _, code, _ in known & set(asked)}
        assert RequestCode.INVOKE_BROKER_TO_RESET_OFFSET in {code for _, code, _ in asked}
        # A reset begins with the route, as RocketMQ's does (docs/spec/reset.md D.1).
        assert again - SAMPLED == {RequestCode.GET_ROUTEINFO_BY_TOPIC}


@played()
async def test_a_watch_of_64_busy_queues_at_rocketmq_asks_at_most_four_questions_a_sample(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it asked for the count with each sample; samples are half a second apart."""
    await stage.create_topic(TOPIC, 64)
    async with new_consumer(stage):
        sending = asyncio.create_task(send_steadily(stage))
        await stage.world.sleep(40)
        began = stage.world.now
        with counted(monkeypatch) as asked:
            assert await watch_as_at_rocketmq(stage, 64, 75) == [State.PROVEN] * 64
        seconds = stage.world.now - began
        sending.cancel()
    by_code: Counter[RequestCode] = Counter()
    for (_, code, _), count in asked.items():
        by_code[code] += count
    samples = by_code[RequestCode.GET_CONSUMER_CONNECTION_LIST]
    assert by_code[RequestCode.VIEW_BROKER_STATS_DATA] + by_code[RequestCode.GET_CONSUME_STATS] < 2 * samples
    assert asked.total() < 4 * samples
    assert 60 < seconds < 76
    assert asked.total() < 8 * seconds


@played()
async def test_the_preview_of_an_unknown_group_repeats_only_the_question_for_its_retry_topic(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.create_topic(TOPIC, 2)
    admin = await stage.admin()
    with counted(monkeypatch) as asked:
        preview = await make_preview(admin, TOPIC, "nobody", 0)
    assert not preview.knows_group
    assert {code for _, code, _ in repeated(asked)} == {RequestCode.GET_ROUTEINFO_BY_TOPIC}
