"""Push consumer scenarios with forced responses or counted requests (virtual time)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, ConsumeFromWhere, MessageExt
from rewindmq.client.core.broker_api import BrokerApi
from rewindmq.protocol.body.heartbeat import HeartbeatData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import ALL, GUARDED, Scene, commits, consumer_of, play_scripted


@pytest.mark.scenario("C01", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
def test_C01_timers_of_a_started_consumer(profile: Profile) -> None:
    """Heartbeats at 0 s, 1 s, then each 30 s; offsets at 10 s, then each 5 s; routes 30 s, rebalance 20 s."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        async with consumer_of(broker, runtime, profile):
            await world.sleep(65)
            heartbeats = broker.times(RequestCode.HEART_BEAT)
            commits = broker.times(RequestCode.UPDATE_CONSUMER_OFFSET)
            routes = [
                round(at, 1)
                for at, code, header in broker.seen
                if code == RequestCode.GET_ROUTEINFO_BY_TOPIC and header.topic == "T"
            ]
            rebalances = broker.times(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
        # The second heartbeat at 0.0 sends the new subscription version after the rebalance.
        assert sorted(set(heartbeats)) == [0.0, 1.0, 31.0, 61.0]
        assert sorted(set(commits)) == [10.0 + 5 * tick for tick in range(12)]
        assert routes == [0.0, 0.0, 30.0, 60.0]
        times = sorted(set(rebalances))
        assert times[0] == 0.0
        assert all(later - earlier <= 20.1 for earlier, later in pairwise(times))

    play_scripted(scene)


@pytest.mark.parametrize("profile", ALL)
def test_a_change_of_queues_sends_a_newer_subscription_version(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0, 1: 0}

        def versions() -> list[int]:
            beats = [
                decode_body(request, HeartbeatData) for request in broker.headers(RequestCode.HEART_BEAT)
            ]
            found = [
                data.sub_version
                for beat in beats
                for consumer in beat.consumer_data_set
                for data in consumer.subscription_data_set
                if data.topic == "T"
            ]
            return sorted(set(found))

        async with consumer_of(broker, runtime, profile):
            await world.sleep(5)
            known = versions()
            await world.sleep(20)
            assert versions() == known
            broker.topics["T"] = 2
            await world.sleep(40)
            assert len(versions()) == len(known) + 1
            assert versions()[-1] > known[-1] + 20_000

    play_scripted(scene)


@pytest.mark.scenario("C10", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", GUARDED)
def test_C10_a_failure_after_the_queue_was_dropped_has_no_effect(profile: Profile) -> None:
    """The queue is dropped while its listener runs; when the listener fails, nothing is sent or committed."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.queue_messages = {0: [b"x"]}
        running, go_on = asyncio.Event(), asyncio.Event()

        async def fail(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            running.set()
            await go_on.wait()
            return ConsumeConcurrentlyStatus.RECONSUME_LATER

        consumer = consumer_of(broker, runtime, profile)
        consumer.register_message_listener(fail)
        async with consumer:
            await running.wait()
            for process_queue in consumer.process_queues.values():
                process_queue.dropped = True
            go_on.set()
            await world.sleep(60)
            assert broker.times(RequestCode.CONSUMER_SEND_MSG_BACK) == []
            assert set(broker.stored.values()) == {0}

    play_scripted(scene)


@pytest.mark.parametrize("profile", GUARDED)
def test_a_queue_dropped_while_a_failure_is_sent_back_makes_no_progress(profile: Profile) -> None:
    """The third check of ``dropped``: G3 of docs/spec/races.md E.2."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.queue_messages = {0: [b"x"]}
        consumer = consumer_of(broker, runtime, profile)

        def take_back(connection: Any, request: RemotingCommand) -> RemotingCommand:
            for process_queue in consumer.process_queues.values():
                process_queue.dropped = True
            return RemotingCommand(ResponseCode.SUCCESS)

        async def fail(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER

        broker.handlers[RequestCode.CONSUMER_SEND_MSG_BACK] = take_back
        consumer.register_message_listener(fail)
        async with consumer:
            # Before the pull in flight is answered, which may still make progress (E.4).
            await world.sleep(12)
            assert len(broker.times(RequestCode.CONSUMER_SEND_MSG_BACK)) == 1
            assert {offset for _, offset in commits(broker)} == {0}

    play_scripted(scene)


@pytest.mark.parametrize("profile", ALL)
def test_the_offset_of_a_topic_given_up_is_forgotten_without_a_commit(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 7}
        async with consumer_of(broker, runtime, profile) as consumer:
            await world.sleep(12)
            (queue,) = consumer.process_queues
            assert commits(broker) == [(10.0, 7)]
            consumer.unsubscribe("T")
            consumer.instance.rebalance_service.wake()
            await world.sleep(8.5)
            assert consumer.process_queues == {}
            assert consumer.offset_store.read_memory(queue) == -1
            assert commits(broker) == [(10.0, 7)]

    play_scripted(scene)


@pytest.mark.scenario("C13", "v49")
def test_C13_v42_v49_take_any_refusal_of_14_for_no_offset() -> None:
    """Offset query (14) returns SYSTEM_BUSY (2), LAST, max 50: consumption starts at 50."""
    for profile in (Profile.V42, Profile.V49):
        play_scripted(_start_after_busy(profile, [50]))


@pytest.mark.scenario("C13", "v53")
def test_C13_v53_leaves_the_queue_alone_and_tries_again_after_a_second() -> None:
    """Offset query (14) returns SYSTEM_BUSY (2): no ProcessQueue, and another query a second later."""
    play_scripted(_start_after_busy(Profile.V53, []))


def _start_after_busy(profile: Profile, first_pulls: list[int]) -> Scene:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.max_offset = 50
        broker.handlers[RequestCode.QUERY_CONSUMER_OFFSET] = lambda connection, request: RemotingCommand(
            ResponseCode.SYSTEM_BUSY
        )
        where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
        async with consumer_of(broker, runtime, profile, consume_from_where=where):
            await world.sleep(2.5)
            offsets = [header.queue_offset for header in broker.headers(RequestCode.PULL_MESSAGE)]
            assert offsets == first_pulls
            queries = broker.times(RequestCode.QUERY_CONSUMER_OFFSET)
            assert queries == ([0.0] if first_pulls else [0.0, 1.0, 2.0])

    return scene


@pytest.mark.scenario("C16", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
def test_C16_a_queue_not_pulled_for_120_seconds_is_replaced(profile: Profile) -> None:
    """At the rebalance the queue is dropped, its offset stored, and consumption restarts from it."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 10}
        async with consumer_of(broker, runtime, profile) as consumer:
            await world.sleep(1)
            queue, stuck = next(iter(consumer.process_queues.items()))
            stuck.last_pull = runtime.clock.monotonic() - 120.1
            consumer.offset_store.update(queue, 12, increase_only=True)
            broker.seen.clear()
            consumer.instance.rebalance_service.wake()
            await world.sleep(2)
            assert stuck.dropped
            assert consumer.process_queues[queue] is not stuck
            assert commits(broker)[0][1] == 12
            pulls = [header for header in broker.headers(RequestCode.PULL_MESSAGE) if header.topic == "T"]
            assert pulls[0].queue_offset == 12

    play_scripted(scene)


def test_the_name_server_that_answered_is_asked_first_from_then_on() -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        mute = ScriptedBroker(world.runtime("10.0.0.8"), {})
        mute.handlers[RequestCode.GET_ROUTEINFO_BY_TOPIC] = lambda connection, request: None
        await mute.start("10.0.0.8")
        client = RemotingClient(runtime)
        api = BrokerApi(client, (mute.address, broker.address), 401, 3.0)
        took: list[float] = []
        for _ in range(2):
            began = world.now
            assert (await api.topic_route("T")).broker_datas[0].broker_addrs == {0: broker.address}
            took.append(round(world.now - began, 1))
        assert took == [3.0, 0.0]
        await client.close()
        await mute.close()

    play_scripted(scene)
