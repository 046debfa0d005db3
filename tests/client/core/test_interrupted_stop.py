"""Stopping clients: cancellations are not swallowed, and a shutdown cut short leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    LitePullConsumer,
    MessageExt,
    Producer,
    PullConsumer,
    PushConsumer,
)
from rewindmq.client.core.lifecycle import Client
from rewindmq.client.core.periodic import PeriodicTask
from rewindmq.client.core.rebalance_service import RebalanceService
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.names import DEFAULT_TOPIC
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import OK, consumer_of, play_scripted, succeed
from tests.support.virtual import until

# A producer knows brokers from the template's route.
TOPICS = {"T": 1, DEFAULT_TOPIC: 1}


class Stubborn:
    """Work that goes on when it is cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.released = asyncio.Event()

    async def __call__(self, *_: Any) -> bool:
        self.began.set()
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        return True


def periodic_task(runtime: Runtime, work: Stubborn) -> PeriodicTask:
    return PeriodicTask(runtime, 0.0, 1.0, work)


def rebalance_service(runtime: Runtime, work: Stubborn) -> RebalanceService:
    service = RebalanceService(runtime, None, work)
    service.start()
    service.wake()
    return service


@pytest.mark.parametrize("make", [periodic_task, rebalance_service])
def test_a_time_limit_around_stop_fires(
    make: Callable[[Runtime, Stubborn], PeriodicTask | RebalanceService],
) -> None:
    world = World(1)

    async def main() -> None:
        work = Stubborn()
        stoppable = make(world.runtime(), work)
        await work.began.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await stoppable.stop()
        assert world.now == pytest.approx(1.0)
        work.released.set()
        await world.sleep(0.5)
        await stoppable.stop()

    world.run(main())


@pytest.mark.parametrize("is_orderly", [False, True])
def test_a_time_limit_around_a_shutdown_fires_although_a_listener_does_not_end(is_orderly: bool) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        work = Stubborn()

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            await work()
            return OK

        async def listen_in_order(
            messages: Sequence[MessageExt], context: ConsumeOrderlyContext
        ) -> ConsumeOrderlyStatus:
            await work()
            return ConsumeOrderlyStatus.SUCCESS

        broker.stored = {0: 0}
        broker.queue_messages = {0: [b"x"]}
        consumer = consumer_of(broker, runtime)
        if is_orderly:
            consumer.register_orderly_listener(listen_in_order)
        else:
            consumer.register_message_listener(listen)
        await consumer.start()
        await work.began.wait()
        began = world.now
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await consumer.shutdown()
        assert world.now - began == pytest.approx(1.0)
        await until(world, lambda: not consumer.instance.remoting.connections, 1.0)
        work.released.set()

    play_scripted(scene)


def make_client(kind: Callable[..., Client], broker: ScriptedBroker, runtime: Runtime) -> Client:
    client = kind("G", broker.address, runtime=runtime)
    if isinstance(client, PushConsumer):
        client.register_message_listener(succeed)
    if isinstance(client, PushConsumer | LitePullConsumer):
        client.subscribe("T")
    if isinstance(client, PullConsumer):
        client.register_topic("T")
    return client


@pytest.mark.parametrize("kind", [Producer, PushConsumer, PullConsumer, LitePullConsumer])
def test_a_shutdown_that_is_cut_short_leaves_no_connection_and_no_timer(kind: type[Client]) -> None:
    """The broker does not answer UNREGISTER_CLIENT (35); cancelled then, the client closes everything."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.handlers[RequestCode.UNREGISTER_CLIENT] = lambda connection, request: None
        client = make_client(kind, broker, runtime)
        before = asyncio.all_tasks()
        await client.start()
        await world.sleep(25)
        assert client.instance.remoting.connections
        ending = asyncio.ensure_future(client.shutdown())
        await until(
            world, lambda: RequestCode.UNREGISTER_CLIENT in [code for _, code, _ in broker.seen], 10.0
        )
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await until(world, lambda: not client.instance.remoting.connections, 1.0)
        broker.seen.clear()
        await world.sleep(200)
        assert broker.seen == []
        assert asyncio.all_tasks() == before
        await client.shutdown()

    play_scripted(scene, topics=TOPICS)


def test_a_shutdown_that_is_cut_short_leaves_the_other_clients_of_the_instance_alone() -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.handlers[RequestCode.UNREGISTER_CLIENT] = lambda connection, request: None
        producer = Producer("P", broker.address, runtime=runtime, instance_name="c1")
        consumer = consumer_of(broker, runtime)
        await consumer.start()
        await producer.start()
        assert producer.instance is consumer.instance
        await world.sleep(5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await producer.shutdown()
        broker.seen.clear()
        await world.sleep(40)
        assert {RequestCode.PULL_MESSAGE, RequestCode.HEART_BEAT} <= {code for _, code, _ in broker.seen}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await consumer.shutdown()

    play_scripted(scene)


def test_a_shutdown_that_is_cut_short_closes_the_trace_producer() -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.handlers[RequestCode.UNREGISTER_CLIENT] = lambda connection, request: None
        producer = Producer("P", broker.address, runtime=runtime, enable_msg_trace=True)
        await producer.start()
        await world.sleep(5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await producer.shutdown()
        await world.sleep(1)
        broker.seen.clear()
        await world.sleep(200)
        assert broker.seen == []

    play_scripted(scene, topics=TOPICS)
