"""A rebalance that is cancelled, fails, or is overtaken leaves no queue owned and unpulled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rewindmq import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    LitePullConsumer,
    MessageExt,
    MessageQueue,
    PushConsumer,
)
from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody
from rewindmq.protocol.body.lock import LockBatchRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import QueryConsumerOffsetRequestHeader
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import ALL, play_scripted, succeed
from tests.support.virtual import until

# A rebalance, a refresh of the locks and the longest delay of a pull; a stuck queue is replaced after 120 s.
SOON = 50.0
KINDS = ("concurrent", "orderly", "lite")
RebalancingConsumer = PushConsumer | LitePullConsumer


async def listen_in_order(
    messages: Sequence[MessageExt], context: ConsumeOrderlyContext
) -> ConsumeOrderlyStatus:
    return ConsumeOrderlyStatus.SUCCESS


def idle_consumer(
    kind: str, broker: ScriptedBroker, runtime: Runtime, profile: Profile, **options: Any
) -> RebalancingConsumer:
    """Return a consumer that rebalances only when the test asks."""
    common = {"runtime": runtime, "profile": profile, "instance_name": "c1", **options}
    consumer: RebalancingConsumer
    if kind == "lite":
        consumer = LitePullConsumer("G", broker.address, **common)
    else:
        consumer = PushConsumer("G", broker.address, **common)
        consumer.suspend()
        if kind == "orderly":
            consumer.register_orderly_listener(listen_in_order)
        else:
            consumer.register_message_listener(succeed)
    consumer.subscribe("T")
    return consumer


async def rebalance(consumer: RebalancingConsumer) -> None:
    if isinstance(consumer, PushConsumer):
        await consumer.resume()
    else:
        await consumer.instance.send_heartbeats()
        await consumer.rebalance()


class Held:
    """Holds back the responses to requests about one queue."""

    def __init__(
        self, broker: ScriptedBroker, code: int, is_about_it: Callable[[RemotingCommand], bool]
    ) -> None:
        self._broker, self._code = broker, code
        self._answer = broker.handlers[code]
        self._is_about_it = is_about_it
        self._waiting: list[tuple[Connection, RemotingCommand]] = []
        self.came = asyncio.Event()
        broker.handlers[code] = self._hold

    def _hold(self, connection: Connection, request: RemotingCommand) -> Any:
        if not self._is_about_it(request):
            return self._answer(connection, request)
        self._waiting.append((connection, request))
        self.came.set()
        return None

    def release(self) -> None:
        """Answer the held requests, and hold no more."""
        self._broker.handlers[self._code] = self._answer
        for connection, request in self._waiting:
            connection.reply(request, self._answer(connection, request))


def hold_offset(broker: ScriptedBroker, queue_id: int) -> Held:
    def is_about_it(request: RemotingCommand) -> bool:
        header = request.decode_header(QueryConsumerOffsetRequestHeader)
        return header.topic == "T" and header.queue_id == queue_id

    return Held(broker, RequestCode.QUERY_CONSUMER_OFFSET, is_about_it)


def hold_lock(broker: ScriptedBroker, queue_id: int) -> Held:
    queue = MessageQueue("T", "broker-a", queue_id)
    return Held(
        broker,
        RequestCode.LOCK_BATCH_MQ,
        lambda request: queue in decode_body(request, LockBatchRequestBody).mq_set,
    )


def pulled(broker: ScriptedBroker) -> set[int]:
    codes = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
    return {header.queue_id for code in codes for header in broker.headers(code) if header.topic == "T"}


async def cut_short(work: asyncio.Task[None]) -> None:
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_rebalance_leaves_no_queue_unpulled(kind: str, profile: Profile) -> None:
    """It is cancelled at the third queue. The first two are pulled, and the others follow at the next
    rebalance."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = dict.fromkeys(range(4), 0)
        held = hold_offset(broker, 2) if kind != "orderly" else hold_lock(broker, 2)
        async with idle_consumer(kind, broker, runtime, profile) as consumer:
            work = asyncio.ensure_future(rebalance(consumer))
            await held.came.wait()
            await cut_short(work)
            held.release()
            await until(world, lambda: pulled(broker) == {0, 1, 2, 3}, SOON)

    play_scripted(scene, topics={"T": 4})


def test_queues_taken_over_are_pulled_at_once_when_the_rebalance_is_cancelled() -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = dict.fromkeys(range(4), 0)
        held = hold_offset(broker, 2)
        async with idle_consumer("concurrent", broker, runtime, Profile.V49) as consumer:
            work = asyncio.ensure_future(rebalance(consumer))
            await held.came.wait()
            await cut_short(work)
            await until(world, lambda: pulled(broker) == {0, 1}, 1.0)

    play_scripted(scene, topics={"T": 4})


def test_a_rebalance_that_fails_unexpectedly_leaves_no_queue_unpulled() -> None:
    class Failing(PushConsumer):
        async def start_offset(self, queue: MessageQueue) -> int:
            if queue.queue_id == 2:
                raise ZeroDivisionError
            return 0

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        consumer = Failing("G", broker.address, runtime=runtime, instance_name="c1")
        consumer.register_message_listener(succeed)
        consumer.subscribe("T")
        async with consumer:
            await until(world, lambda: pulled(broker) == {0, 1}, SOON)

    play_scripted(scene, topics={"T": 4})


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_whose_giving_up_was_cancelled_can_be_taken_over_again(kind: str, profile: Profile) -> None:
    """The other consumer leaves before the queue's offset is committed. The queue is taken over at the next
    rebalance, not after 120 s without a pull."""

    async def scene(world: World, broker: ScriptedBroker, _: Runtime) -> None:
        is_held = False
        committing = asyncio.Event()

        async def stall(point: Point, details: dict[str, Any]) -> None:
            if point is Point.COMMIT_READ and is_held and details["topic"] == "T":
                committing.set()
                await asyncio.Event().wait()

        def members(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            own = next(iter(broker.connections))
            body = GetConsumerListByGroupResponseBody([own, f"{own}2"] if is_held else [own])
            return RemotingCommand(ResponseCode.SUCCESS, None, body)

        broker.stored = dict.fromkeys(range(2), 7)
        broker.queue_messages = {0: [b"x"] * 8, 1: [b"x"] * 8}
        broker.handlers[RequestCode.GET_CONSUMER_LIST_BY_GROUP] = members
        runtime = world.runtime("10.0.0.2", failpoint=stall)
        async with idle_consumer(kind, broker, runtime, profile) as consumer:
            await rebalance(consumer)
            await until(world, lambda: pulled(broker) == {0, 1}, SOON)
            (given_up,) = (q for q in consumer.process_queues if (q.topic, q.queue_id) == ("T", 1))
            consumer.offset_store.update(given_up, 7, increase_only=False)
            is_held = True
            work = asyncio.ensure_future(rebalance(consumer))
            await committing.wait()
            await cut_short(work)
            is_held = False
            broker.seen.clear()
            await until(world, lambda: 1 in pulled(broker), SOON)

    play_scripted(scene, topics={"T": 2})


def test_a_topic_unsubscribed_from_while_its_queues_are_taken_over_is_not_assigned() -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = dict.fromkeys(range(2), 0)
        consumer = idle_consumer("lite", broker, runtime, Profile.V49)
        assert isinstance(consumer, LitePullConsumer)
        held = hold_offset(broker, 1)
        async with consumer:
            work = asyncio.ensure_future(rebalance(consumer))
            await held.came.wait()
            consumer.unsubscribe("T")
            held.release()
            await work
            assert consumer.assignment == []
            assert not consumer.process_queues

    play_scripted(scene, topics={"T": 2})


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_shut_down_while_its_queues_are_taken_over_owns_and_pulls_none(kind: str) -> None:
    """The instance goes on with another consumer, and so does its rebalance."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = dict.fromkeys(range(2), 0)
        held = hold_offset(broker, 1)
        other = PushConsumer("H", broker.address, runtime=runtime, instance_name="c1")
        other.register_message_listener(succeed)
        async with other:
            consumer = idle_consumer(kind, broker, runtime, Profile.V49)
            await consumer.start()
            assert consumer.instance is other.instance
            work = asyncio.ensure_future(rebalance(consumer))
            await held.came.wait()
            await consumer.shutdown()
            held.release()
            await work
            assert not consumer.process_queues
            assert pulled(broker) == set()

    play_scripted(scene, topics={"T": 2})


@pytest.mark.parametrize("profile", ALL)
def test_the_queues_of_a_cancelled_reset_are_taken_over_again(profile: Profile) -> None:
    """Cancelled in its wait of 10 s, the reset has dropped the queues and not removed them."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = dict.fromkeys(range(2), 0)
        consumer = idle_consumer("concurrent", broker, runtime, profile)
        assert isinstance(consumer, PushConsumer)
        async with consumer:
            await consumer.resume()
            await until(world, lambda: pulled(broker) == {0, 1}, SOON)
            work = asyncio.ensure_future(consumer.reset_offset_by_timestamp(1))
            await until(world, lambda: consumer.is_suspended)
            await cut_short(work)
            broker.seen.clear()
            await until(world, lambda: pulled(broker) == {0, 1}, SOON)

    play_scripted(scene, topics={"T": 2})
