"""Two consumers with one client id, as containers with equal addresses and process ids have."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt
from rewindmq.client.admin.shared_ids import shared_client_ids
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.protocol.body.connection import Connection, ConsumerConnection
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.profile import RELEASES, Profile
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage

SHARED = "172.17.0.1@same"
HOSTS = ("10.0.3.1", "10.0.3.2")


@asynccontextmanager
async def two_consumers(
    stage: SimStage, *, names: Sequence[str] = ("same", "same")
) -> AsyncIterator[list[int]]:
    """Run two consumers that each take 2 s for a message, and have consumed ten messages of one queue.

    Yields the offsets that they get from then on.
    """
    got: list[int] = []
    await stage.create_topic(TOPIC, 1)
    await stage.send(10, TOPIC)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        got.extend(message.queue_offset for message in messages)
        await stage.runtime.timers.sleep(2.0)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    first, second = [
        new_consumer(
            stage,
            host=host,
            listener=listener,
            client_ip="172.17.0.1",
            instance_name=name,
            consume_thread_max=1,
        )
        for host, name in zip(HOSTS, names, strict=True)
    ]
    async with first, second:
        await stage.world.sleep(60)
        got.clear()
        yield got


def is_named(text: str) -> bool:
    """Return whether a sentence names the shared id and both consumers."""
    return f"2 consumers have the client id {SHARED}" in text and all(host in text for host in HOSTS)


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_commands_and_preview_name_a_client_id_that_consumers_share(
    stage: SimStage, profile: Profile
) -> None:
    async with two_consumers(stage):
        lines = await stage.run(f"consumerConnection -g {GROUP}")
        assert lines[-1].startswith("WARN: ")
        assert is_named(lines[-1])
        data = await stage.data(f"consumerConnection -g {GROUP}")
        assert [host.split(":")[0] for host in data["sharedClientIds"][SHARED]] == [*HOSTS]
        assert any(map(is_named, await stage.run(f"consumerStatus -g {GROUP}")))
        preview = await make_preview(await stage.admin(), TOPIC, GROUP, 0)
        assert preview.consumers == (SHARED,)
        assert [note for note in preview.notes if is_named(note)]


@played()
async def test_consumers_with_ids_of_their_own_are_not_warned_of(stage: SimStage) -> None:
    async with two_consumers(stage, names=("one", "two")):
        lines = await stage.run(f"consumerConnection -g {GROUP}")
        assert not [line for line in lines if line.startswith("WARN")]
        assert (await stage.data(f"consumerConnection -g {GROUP}"))["sharedClientIds"] == {}


@pytest.mark.parametrize("mode", ["classic", "fenced"])
@played()
async def test_a_watch_decides_nothing_by_one_of_two_consumers_with_one_client_id(
    stage: SimStage, mode: str
) -> None:
    """A broker asks only one of them for its positions; the other may redeliver, or overwrite the offset."""
    async with two_consumers(stage):
        line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --mode {mode} --watch"
        *_, last = await stage.printed(line.split())
    assert (last.data["verdict"], last.exit_code) == ("unknown", 4)
    (queue,) = last.data["queues"]
    assert f"several consumers have the client id {SHARED}" in queue["reason"]


@played()
async def test_a_watch_sees_at_the_broker_that_one_of_two_consumers_with_one_id_undid_a_reset(
    stage: SimStage,
) -> None:
    """One takes the mark, and finds the offset that the other has committed again."""
    async with two_consumers(stage) as got:
        line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --mode server --watch"
        *_, last = await stage.printed(line.split())
        assert not got
    assert (last.data["verdict"], last.exit_code) == ("lost", 3)


def test_broadcasting_consumers_may_share_an_id() -> None:
    pair = [Connection("10.0.0.1@DEFAULT", f"10.0.0.1:{port}") for port in (7, 5)]
    assert shared_client_ids(ConsumerConnection(pair)) == {"10.0.0.1@DEFAULT": ["10.0.0.1:5", "10.0.0.1:7"]}
    broadcasting = ConsumerConnection(pair, message_model=MessageModel.BROADCASTING)
    assert shared_client_ids(broadcasting) == {}
