"""Pulls of a push consumer, with forced responses and counted requests (virtual time)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.client import NotifyConsumerIdsChangedRequestHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.client_records import record
from tests.client.scripted_broker import ScriptedBroker, pull_answer
from tests.client.scripted_stage import ALL, OK, commits, consumer_of, play_scripted


@pytest.mark.scenario("C05", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(("count", "pulls"), [(1000, True), (1001, False)])
def test_C05_cached_messages_hold_up_the_next_pull(count: int, pulls: bool, profile: Profile) -> None:
    """1,000 messages in the cache do not hold up the next pull, 1,001 do."""
    assert _pulls_after(count, [b"x"] * count, profile, pull_batch_size=1024) is pulls


@pytest.mark.scenario("C06", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(("mib", "pulls"), [(100, True), (101, False)])
def test_C06_cached_bytes_hold_up_the_next_pull(mib: int, pulls: bool, profile: Profile) -> None:
    """100 MiB in the cache do not hold up the next pull, 101 do."""
    bodies = [b"x" * (1 << 20)] * mib
    assert _pulls_after(mib, bodies, profile, pull_batch_size=8) is pulls


def _pulls_after(count: int, bodies: list[bytes], profile: Profile, *, pull_batch_size: int) -> bool:
    """Return True if the queue is pulled again once ``count`` messages are cached and none is consumed."""
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
            await world.sleep(3)
            offsets = [
                header.queue_offset
                for header in broker.headers(RequestCode.PULL_MESSAGE)
                if header.topic == "T"
            ]
            outcome.append(offsets[-1] == count)

    play_scripted(scene)
    return outcome[0]


@pytest.mark.scenario("C07", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize(("span", "pulls"), [(2000, True), (2001, False)])
def test_C07_a_wide_span_holds_up_the_next_pull(span: int, pulls: bool, profile: Profile) -> None:
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
            await world.sleep(3)
            assert (span + 1 in held) is pulls

    play_scripted(scene)


@pytest.mark.parametrize(
    ("readable", "dropped"), [(0, "from offset 5 up to 8"), (2, "from offset 7 up to 8"), (3, None)]
)
def test_unreadable_records_of_a_pull_are_dropped_with_a_warning(
    readable: int, dropped: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Java, the consumer loses the records after a bad one; the log says which."""
    received: list[int] = []

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 5}
        records = [record(5), record(6), record(7)]
        for number in range(readable, 3):
            records[number] = b"\0" * len(records[number])

        def pull(connection: Any, request: RemotingCommand) -> RemotingCommand | None:
            header = request.decode_header(PullMessageRequestHeader)
            if header.topic == "T" and header.queue_offset == 5:
                return pull_answer(ResponseCode.SUCCESS, 8, b"".join(records))
            return None

        async def take(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            received.extend(message.queue_offset for message in messages)
            return OK

        broker.handlers[RequestCode.PULL_MESSAGE] = pull
        consumer = consumer_of(broker, runtime, Profile.V49)
        consumer.register_message_listener(take)
        async with consumer:
            await world.sleep(3)

    play_scripted(scene)
    assert received == list(range(5, 5 + readable))
    warnings = [line for line in caplog.messages if line.startswith("pull of")]
    if dropped is None:
        assert warnings == []
    else:
        (warning,) = warnings
        assert dropped in warning
        assert "topic=T, brokerName=broker-a, queueId=0" in warning


@pytest.mark.scenario("C08", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
def test_C08_a_suspended_consumer_neither_pulls_nor_rebalances_but_commits(profile: Profile) -> None:
    """For 5 s after a suspend: no pulls, offsets still sent, and no rebalance because of a 40."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 7}
        async with consumer_of(broker, runtime, profile) as consumer:
            await world.sleep(14)
            consumer.suspend()
            await world.sleep(5)
            broker.seen.clear()
            notice = NotifyConsumerIdsChangedRequestHeader("G")
            broker.connections["127.0.0.1@c1"].send_oneway(
                RemotingCommand(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, notice)
            )
            await world.sleep(5)
            assert broker.times(RequestCode.PULL_MESSAGE) == []
            assert broker.times(RequestCode.GET_CONSUMER_LIST_BY_GROUP) == []
            assert broker.times(RequestCode.UPDATE_CONSUMER_OFFSET) != []
            await consumer.resume()
            await world.sleep(1)
            assert broker.times(RequestCode.GET_CONSUMER_LIST_BY_GROUP) != []
            assert broker.times(RequestCode.PULL_MESSAGE) != []

    play_scripted(scene)


@pytest.mark.parametrize("profile", ALL)
def test_a_late_response_without_messages_does_not_undo_progress(profile: Profile) -> None:
    """NO_MATCHED_MSG only raises the offset in memory (docs/spec/client.md C.7)."""

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
            await world.sleep(2)
            (queue,) = (queue for queue in consumer.process_queues if queue.topic == "T")
            consumer.update_offset(queue, 150)
            connection, request = late[0]
            connection.reply(request, pull_answer(ResponseCode.PULL_RETRY_IMMEDIATELY, 132))
            await world.sleep(1)
            assert broker.headers(RequestCode.PULL_MESSAGE)[-1].queue_offset == 132
            assert consumer.offset_store.read_memory(queue) == 150

    play_scripted(scene)


@pytest.mark.parametrize("profile", ALL)
def test_the_pulls_of_a_dropped_queue_end(profile: Profile) -> None:
    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        async with consumer_of(broker, runtime, profile) as consumer:
            await world.sleep(2)
            for process_queue in consumer.process_queues.values():
                process_queue.dropped = True
            broker.seen.clear()
            # The suspended pull returns within 15 s.
            await world.sleep(50)
            assert [h for h in broker.headers(RequestCode.PULL_MESSAGE) if h.topic == "T"] == []

    play_scripted(scene)


@pytest.mark.parametrize(("profile", "pulls"), [(Profile.V42, 4), (Profile.V49, 10), (Profile.V53, 450)])
def test_a_pull_refused_for_too_much_traffic_is_repeated(profile: Profile, pulls: int) -> None:
    """FLOW_CONTROL (215): after the exception delay, in 5.x after 20 ms (docs/spec/client.md C.7)."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.handlers[RequestCode.PULL_MESSAGE] = lambda connection, request: RemotingCommand(
            ResponseCode.FLOW_CONTROL
        )
        async with consumer_of(broker, runtime, profile):
            await world.sleep(10)
            assert len(broker.times(RequestCode.PULL_MESSAGE)) == pytest.approx(pulls, rel=0.05)

    play_scripted(scene)


@pytest.mark.scenario("C14", "v42", "v49")
@pytest.mark.parametrize("profile", [Profile.V42, Profile.V49])
def test_C14_an_illegal_offset_is_corrected_after_10_seconds(profile: Profile) -> None:
    """21 with next offset 40: no pull for 10 s, a commit of 40, a new ProcessQueue at the next rebalance."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 10}
        _answer_first_pull_with_21(broker, 40)
        async with consumer_of(broker, runtime, profile):
            await world.sleep(9.8)
            assert len(broker.headers(RequestCode.PULL_MESSAGE)) == 1
            await world.sleep(0.4)
            committed = commits(broker)
            assert (10.0, 40) in committed
            assert broker.stored[0] == 40
            assert len(broker.headers(RequestCode.PULL_MESSAGE)) == 1
            await world.sleep(10.2)
            assert [header.queue_offset for header in broker.headers(RequestCode.PULL_MESSAGE)] == [10, 40]
            assert broker.times(RequestCode.PULL_MESSAGE)[1] == 20.0

    play_scripted(scene)


@pytest.mark.scenario("C15", "v53")
def test_C15_v53_corrects_an_illegal_offset_at_once() -> None:
    """The same response: a commit of 40 and a rebalance at once, 1 s after the last; a pull 500 ms later."""

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 10}
        broker.topics["%RETRY%G"] = 1
        _answer_first_pull_with_21(broker, 40)
        async with consumer_of(broker, runtime, Profile.V53):
            await world.sleep(4)
            pulls = [
                (round(at, 1), header.queue_offset)
                for at, code, header in broker.seen
                if code == RequestCode.PULL_MESSAGE and header.topic == "T"
            ]
            # Rebalanced at 0.0, pulled 500 ms later; corrected at once, rebalanced at 1.0.
            assert pulls == [(0.5, 10), (1.5, 40)]
            assert commits(broker)[0] == (0.5, 40)

    play_scripted(scene)


def _answer_first_pull_with_21(broker: ScriptedBroker, next_offset: int) -> None:
    usual = broker.handlers[RequestCode.PULL_MESSAGE]
    answered: list[bool] = []

    def pull(connection: Any, request: RemotingCommand) -> RemotingCommand | None:
        if answered or request.decode_header(PullMessageRequestHeader).topic != "T":
            return usual(connection, request)  # type: ignore[no-any-return]
        answered.append(True)
        return pull_answer(ResponseCode.PULL_OFFSET_MOVED, next_offset)

    broker.handlers[RequestCode.PULL_MESSAGE] = pull
