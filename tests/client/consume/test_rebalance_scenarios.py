"""The division of queues, and the progress of an emptied queue, in every release."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.inbox import Inbox
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import commits, consumer_of, play_scripted
from tests.support.clients import OK
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage


@pytest.mark.scenario("C02", "v42", "v49", "v53")
@pytest.mark.scenario("C03", "v42", "v49", "v53")
@pytest.mark.parametrize(
    ("queues", "expected"),
    [(8, [{0, 1, 2}, {3, 4, 5}, {6, 7}]), (2, [{0}, {1}, set()])],
    ids=["C02", "C03"],
)
@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_C02_C03_queues_of_a_topic_and_three_clients(
    stage: SimStage, profile: Profile, queues: int, expected: list[set[int]]
) -> None:
    """8 queues: three, three and two, in the order of client ids. 2 queues: the third client gets none."""
    await stage.create_topic(queues=queues)
    members = [await stage.consume(Inbox(stage.world), name=name) for name in "abc"]
    await stage.world.sleep(25)
    owned = [{queue.queue_id for queue in member.process_queues if queue.topic == "T"} for member in members]
    assert owned == expected


@pytest.mark.parametrize("profile", RELEASES)
def test_consumers_that_share_a_client_id_take_the_same_queues_and_say_so(
    play: RunScenario, profile: Profile, caplog: pytest.LogCaptureFixture
) -> None:
    """Containers with equal addresses and process ids: as in RocketMQ, half of the queues get no consumer."""

    async def scene(stage: SimStage) -> None:
        await stage.create_topic(queues=8)
        first, second = [
            await stage.consume(Inbox(stage.world), name="same", host=host, client_ip="172.17.0.1")
            for host in ("10.0.3.1", "10.0.3.2")
        ]
        await stage.world.sleep(65)
        for member in (first, second):
            owned = {queue.queue_id for queue in member.process_queues if queue.topic == "T"}
            assert owned == {0, 1, 2, 3}
        warnings = [message for message in caplog.messages if "have the client id" in message]
        assert len(warnings) == 2
        assert all("2 consumers of group G have the client id 172.17.0.1@same" in text for text in warnings)
        await second.shutdown()
        await stage.world.sleep(25)
        assert len([queue for queue in first.process_queues if queue.topic == "T"]) == 8

    with caplog.at_level("WARNING"):
        play(scene, profile=profile)


@pytest.mark.scenario("C11", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", RELEASES)
def test_C11_after_a_clear_a_finished_batch_moves_no_offset(profile: Profile) -> None:
    """The emptied cache lacks the finished messages: removing them gives -1, and no offset is noted."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 10}
        broker.queue_messages = {0: [b"x"] * 12}
        called, finish = asyncio.Event(), asyncio.Event()

        async def slow(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            called.set()
            await finish.wait()
            return OK

        consumer = consumer_of(broker, runtime, profile)
        consumer.register_message_listener(slow)
        async with consumer:
            await called.wait()
            (queue,) = (queue for queue in consumer.process_queues if queue.topic == "T")
            process_queue = consumer.process_queues[queue]
            assert process_queue.cached_count == 2
            process_queue.clear()
            finish.set()
            await world.sleep(10)
            assert consumer.offset_store.read_memory(queue) == 10
            assert {offset for _, offset in commits(broker)} <= {0, 10}
            assert process_queue.remove_messages([]) == -1

    play_scripted(scene)
