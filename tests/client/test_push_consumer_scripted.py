"""Push consumer scenarios in which an answer must be forced or every request counted (virtual time)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from scripted_broker import ScriptedBroker, pull_answer

from rewindmq.client import ConsumeConcurrentlyStatus, ConsumeFromWhere, MessageExt, PushConsumer
from rewindmq.protocol.body.heartbeat import HeartbeatData
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.client import NotifyConsumerIdsChangedRequestHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World

OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
ALL = list(Profile)
Scene = Callable[[World, ScriptedBroker, Runtime], Awaitable[None]]


def play(scene: Scene, *, topics: dict[str, int] | None = None, seed: int = 1) -> None:
    """Run a scene against a scripted broker; the client's runtime is on another host."""
    world = World(seed)

    async def main() -> None:
        broker = ScriptedBroker(world.runtime("10.0.0.9"), topics or {"T": 1})
        await broker.start("10.0.0.9")
        try:
            await scene(world, broker, world.runtime("10.0.0.1"))
        finally:
            await broker.close()

    world.run(main())


def consumer_of(
    broker: ScriptedBroker, runtime: Runtime, profile: Profile = Profile.V49, **options: Any
) -> PushConsumer:
    consumer = PushConsumer(
        "G", broker.address, runtime=runtime, profile=profile, instance_name="c1", **options
    )
    consumer.subscribe("T")
    consumer.register_message_listener(succeed)
    return consumer


async def succeed(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
    return OK


@pytest.mark.parametrize("profile", ALL)
def test_C01_timers_of_a_started_consumer(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        async with consumer_of(broker, runtime, profile):
            await asyncio.sleep(65)
            heartbeats = broker.times(RequestCode.HEART_BEAT)
            commits = broker.times(RequestCode.UPDATE_CONSUMER_OFFSET)
            routes = [
                round(at, 1)
                for at, code, header in broker.seen
                if code == RequestCode.GET_ROUTEINFO_BY_TOPIC and header.topic == "T"
            ]
            rebalances = broker.times(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
        # The one at 0.0 besides the start's tells the new subscription version after the rebalance.
        assert sorted(set(heartbeats)) == [0.0, 1.0, 31.0, 61.0]
        assert sorted(set(commits)) == [10.0 + 5 * tick for tick in range(12)]
        assert routes == [0.0, 0.0, 30.0, 60.0]
        times = sorted(set(rebalances))
        assert times[0] == 0.0
        assert all(later - earlier <= 20.1 for earlier, later in pairwise(times))

    play(scene)


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(("count", "pulls"), [(1000, True), (1001, False)])
def test_C05_cached_messages_hold_up_the_next_pull(count: int, pulls: bool, profile: Profile) -> None:
    assert _pulls_after(count, [b"x"] * count, profile, pull_batch_size=1024) is pulls


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(("mib", "pulls"), [(100, True), (101, False)])
def test_C06_cached_bytes_hold_up_the_next_pull(mib: int, pulls: bool, profile: Profile) -> None:
    bodies = [b"x" * (1 << 20)] * mib
    assert _pulls_after(mib, bodies, profile, pull_batch_size=8) is pulls


def _pulls_after(count: int, bodies: list[bytes], profile: Profile, *, pull_batch_size: int) -> bool:
    """Whether the queue is pulled again once ``count`` messages are cached and none is finished."""
    outcome: list[bool] = []

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.queue_messages = {0: bodies}
        forever = asyncio.Event()

        async def stuck(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            await forever.wait()
            return OK

        consumer = consumer_of(broker, runtime, profile, pull_batch_size=pull_batch_size)
        consumer.register_message_listener(stuck)
        async with consumer:
            await asyncio.sleep(3)
            offsets = [
                header.queue_offset
                for header in broker.headers(RequestCode.PULL_MESSAGE)
                if header.topic == "T"
            ]
            outcome.append(offsets[-1] == count)

    play(scene)
    return outcome[0]


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(("span", "pulls"), [(2000, True), (2001, False)])
def test_C07_a_wide_span_holds_up_the_next_pull(span: int, pulls: bool, profile: Profile) -> None:
    from client_records import record

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        held: list[int] = []

        def pull(connection: Any, request: RemotingCommand) -> RemotingCommand | None:
            header = request.decode_header(PullMessageRequestHeader)
            if header.topic != "T" or held:
                held.append(header.queue_offset)
                return None
            held.append(header.queue_offset)
            return pull_answer(ResponseCode.SUCCESS, span + 1, record(0) + record(span))

        broker.handlers[RequestCode.PULL_MESSAGE] = pull
        forever = asyncio.Event()

        async def stuck(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            await forever.wait()
            return OK

        consumer = consumer_of(broker, runtime, profile)
        consumer.register_message_listener(stuck)
        async with consumer:
            await asyncio.sleep(3)
            assert (span + 1 in held) is pulls

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_a_change_of_queues_is_told_with_a_newer_subscription_version(profile: Profile) -> None:
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
            await asyncio.sleep(5)
            known = versions()
            await asyncio.sleep(20)
            assert versions() == known
            broker.topics["T"] = 2
            await asyncio.sleep(40)
            assert len(versions()) == len(known) + 1
            assert versions()[-1] > known[-1] + 20_000

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_C08_a_suspended_consumer_neither_pulls_nor_rebalances_but_commits(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 7}
        async with consumer_of(broker, runtime, profile) as consumer:
            await asyncio.sleep(14)
            consumer.suspend()
            await asyncio.sleep(5)
            broker.seen.clear()
            notice = NotifyConsumerIdsChangedRequestHeader("G")
            broker.connections["127.0.0.1@c1"].send_oneway(
                RemotingCommand(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, notice)
            )
            await asyncio.sleep(5)
            assert broker.times(RequestCode.PULL_MESSAGE) == []
            assert broker.times(RequestCode.GET_CONSUMER_LIST_BY_GROUP) == []
            assert broker.times(RequestCode.UPDATE_CONSUMER_OFFSET) != []
            await consumer.resume()
            await asyncio.sleep(1)
            assert broker.times(RequestCode.GET_CONSUMER_LIST_BY_GROUP) != []
            assert broker.times(RequestCode.PULL_MESSAGE) != []

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_C10_a_failure_after_the_queue_was_dropped_has_no_effect(profile: Profile) -> None:
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
            await asyncio.sleep(60)
            assert broker.times(RequestCode.CONSUMER_SEND_MSG_BACK) == []
            assert set(broker.stored.values()) == {0}

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_a_queue_dropped_while_a_failure_is_sent_back_makes_no_progress(profile: Profile) -> None:
    """The third look at ``dropped``, G3 of behaviour.md E.2."""

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
            # Before the pull in flight is answered, which nobody keeps from making progress (E.4).
            await asyncio.sleep(12)
            assert len(broker.times(RequestCode.CONSUMER_SEND_MSG_BACK)) == 1
            assert {offset for _, offset in _commits(broker)} == {0}

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_a_late_answer_without_messages_does_not_take_progress_back(profile: Profile) -> None:
    """NO_MATCHED_MSG only raises the offset in memory (behaviour.md C.7)."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 100}
        usual = broker.handlers[RequestCode.PULL_MESSAGE]
        late: list[tuple[Any, RemotingCommand]] = []

        def pull(connection: Any, request: RemotingCommand) -> RemotingCommand | None:
            if late or request.decode_header(PullMessageRequestHeader).topic != "T":
                return usual(connection, request)  # type: ignore[no-any-return]
            late.append((connection, request))
            return None

        broker.handlers[RequestCode.PULL_MESSAGE] = pull
        async with consumer_of(broker, runtime, profile) as consumer:
            await asyncio.sleep(2)
            (queue,) = (queue for queue in consumer.process_queues if queue.topic == "T")
            consumer.update_offset(queue, 150)
            connection, request = late[0]
            connection.reply(request, pull_answer(ResponseCode.PULL_RETRY_IMMEDIATELY, 132))
            await asyncio.sleep(1)
            assert broker.headers(RequestCode.PULL_MESSAGE)[-1].queue_offset == 132
            assert consumer.offset_store.read_memory(queue) == 150

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_the_offset_of_a_topic_given_up_is_forgotten_without_a_commit(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 7}
        async with consumer_of(broker, runtime, profile) as consumer:
            await asyncio.sleep(12)
            (queue,) = consumer.process_queues
            assert _commits(broker) == [(10.0, 7)]
            consumer.unsubscribe("T")
            consumer.instance.rebalance_service.wake()
            await asyncio.sleep(8.5)
            assert consumer.process_queues == {}
            assert consumer.offset_store.read_memory(queue) == -1
            assert _commits(broker) == [(10.0, 7)]

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_the_pulls_of_a_dropped_queue_end(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        async with consumer_of(broker, runtime, profile) as consumer:
            await asyncio.sleep(2)
            for process_queue in consumer.process_queues.values():
                process_queue.dropped = True
            broker.seen.clear()
            # The one that is held comes back within 15 s.
            await asyncio.sleep(50)
            assert [h for h in broker.headers(RequestCode.PULL_MESSAGE) if h.topic == "T"] == []

    play(scene)


@pytest.mark.parametrize(("profile", "pulls"), [(Profile.V42, 4), (Profile.V49, 10), (Profile.V53, 450)])
def test_a_pull_refused_for_too_much_traffic_is_repeated(profile: Profile, pulls: int) -> None:
    """Code 215: after the exception delay, in 5.x after 20 ms (behaviour.md C.7)."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.handlers[RequestCode.PULL_MESSAGE] = lambda connection, request: RemotingCommand(
            ResponseCode.FLOW_CONTROL
        )
        async with consumer_of(broker, runtime, profile):
            await asyncio.sleep(10)
            assert len(broker.times(RequestCode.PULL_MESSAGE)) == pytest.approx(pulls, rel=0.05)

    play(scene)


def test_C13_v42_v49_take_any_refusal_of_14_for_no_offset() -> None:
    for profile in (Profile.V42, Profile.V49):
        play(_start_after_busy(profile, [50]))


def test_C13_v53_leaves_the_queue_alone_and_tries_again_after_a_second() -> None:
    play(_start_after_busy(Profile.V53, []))


def _start_after_busy(profile: Profile, first_pulls: list[int]) -> Scene:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.max_offset = 50
        broker.handlers[RequestCode.QUERY_CONSUMER_OFFSET] = lambda connection, request: RemotingCommand(
            ResponseCode.SYSTEM_BUSY
        )
        where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
        async with consumer_of(broker, runtime, profile, consume_from_where=where):
            await asyncio.sleep(2.5)
            offsets = [header.queue_offset for header in broker.headers(RequestCode.PULL_MESSAGE)]
            assert offsets == first_pulls
            queries = broker.times(RequestCode.QUERY_CONSUMER_OFFSET)
            assert queries == ([0.0] if first_pulls else [0.0, 1.0, 2.0])

    return scene


@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
def test_C14_an_illegal_offset_is_corrected_after_10_seconds(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 10}
        _answer_first_pull_with_21(broker, 40)
        async with consumer_of(broker, runtime, profile):
            await asyncio.sleep(9.8)
            assert len(broker.headers(RequestCode.PULL_MESSAGE)) == 1
            await asyncio.sleep(0.4)
            commits = _commits(broker)
            assert (10.0, 40) in commits
            assert broker.stored[0] == 40
            assert len(broker.headers(RequestCode.PULL_MESSAGE)) == 1
            await asyncio.sleep(10.2)
            assert [header.queue_offset for header in broker.headers(RequestCode.PULL_MESSAGE)] == [10, 40]
            assert broker.times(RequestCode.PULL_MESSAGE)[1] == 20.0

    play(scene)


def test_C15_v53_corrects_an_illegal_offset_at_once() -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 10}
        broker.topics["%RETRY%G"] = 1
        _answer_first_pull_with_21(broker, 40)
        async with consumer_of(broker, runtime, Profile.V53):
            await asyncio.sleep(4)
            pulls = [
                (round(at, 1), header.queue_offset)
                for at, code, header in broker.seen
                if code == RequestCode.PULL_MESSAGE and header.topic == "T"
            ]
            # Rebalanced at 0.0, pulled 500 ms later; corrected at once, rebalanced at 1.0.
            assert pulls == [(0.5, 10), (1.5, 40)]
            assert _commits(broker)[0] == (0.5, 40)

    play(scene)


@pytest.mark.parametrize("profile", ALL)
def test_C16_a_queue_not_pulled_for_120_seconds_is_replaced(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 10}
        async with consumer_of(broker, runtime, profile) as consumer:
            await asyncio.sleep(1)
            queue, stuck = next(iter(consumer.process_queues.items()))
            stuck.last_pull = runtime.clock.monotonic() - 120.1
            consumer.offset_store.update(queue, 12, increase_only=True)
            broker.seen.clear()
            consumer.instance.rebalance_service.wake()
            await asyncio.sleep(2)
            assert stuck.dropped
            assert consumer.process_queues[queue] is not stuck
            assert _commits(broker)[0][1] == 12
            pulls = [header for header in broker.headers(RequestCode.PULL_MESSAGE) if header.topic == "T"]
            assert pulls[0].queue_offset == 12

    play(scene)


def _answer_first_pull_with_21(broker: ScriptedBroker, next_offset: int) -> None:
    usual = broker.handlers[RequestCode.PULL_MESSAGE]
    answered: list[bool] = []

    def pull(connection: Any, request: RemotingCommand) -> RemotingCommand | None:
        if answered or request.decode_header(PullMessageRequestHeader).topic != "T":
            return usual(connection, request)  # type: ignore[no-any-return]
        answered.append(True)
        return pull_answer(ResponseCode.PULL_OFFSET_MOVED, next_offset)

    broker.handlers[RequestCode.PULL_MESSAGE] = pull


def _commits(broker: ScriptedBroker) -> list[tuple[float, int]]:
    return [
        (round(at, 1), header.commit_offset)
        for at, code, header in broker.seen
        if code == RequestCode.UPDATE_CONSUMER_OFFSET
    ]
