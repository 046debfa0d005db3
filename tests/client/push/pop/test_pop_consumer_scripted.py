"""A consumer that pops, at a broker whose answers the test chooses (virtual time)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, PushConsumer, ReconsumeLater
from rewindmq.broker.limits import MAX_BATCH_ACK_ENTRIES
from rewindmq.client.consume.allocate import AllocateConsistentHash
from rewindmq.protocol.body.assignment import MessageQueueAssignment
from rewindmq.protocol.body.batch_ack import BatchAckMessageRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.header.pop import ChangeInvisibleTimeRequestHeader, PopMessageResponseHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.pop.extra_info import ExtraInfo, parse_extra_info
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.client_records import record
from tests.client.push.pop.pop_script import POP, PULL, PopScript, bodies, play_pop, popping

OK = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


class Heard:
    """A listener that keeps the messages, and gives each the result for its body."""

    def __init__(self, **results: Any) -> None:
        self.bodies: list[int] = []
        self.results = {int(name[1:]): result for name, result in results.items()}
        self.seconds = 0.0
        self.timers: Any = None

    async def __call__(self, messages: Sequence[MessageExt]) -> Any:
        found = bodies(messages)
        self.bodies += found
        if self.seconds:
            await self.timers.sleep(self.seconds)
        return self.results.get(found[0], OK)


def hearing(script: PopScript, runtime: Runtime, heard: Heard, **options: Any) -> PushConsumer:
    consumer = popping(script, runtime, **options)
    heard.timers = runtime.timers
    consumer.register_message_listener(heard)
    return consumer


def refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)


def failing(code: ResponseCode) -> Callable[[Connection, RemotingCommand], RemotingCommand]:
    """Return a handler that answers with this code."""
    return lambda connection, request: RemotingCommand(code, remark="not now")


def test_each_message_is_consumed_and_acknowledged_once() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(0, 1, 2)
        script.add(7)
        heard = Heard()
        async with hearing(script, runtime, heard, consume_from="first"):
            await world.sleep(5)
        assert sorted(heard.bodies) == [0, 1, 2, 7]
        assert sorted(script.acked) == [("T", 0), ("T", 1), ("T", 2), ("T", 7)]
        pop = script.pops[0]
        assert (pop.queue_id, pop.max_msg_nums, pop.invisible_time, pop.poll_time) == (-1, 32, 60_000, 15_000)
        assert (pop.init_mode, pop.exp_type, pop.exp, pop.order) == (0, "TAG", "*", False)
        assert script.modes == []
        assert script.changes == []

    play_pop(scene)


def test_acks_that_wait_go_out_together_and_alone_where_the_broker_knows_no_batches() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        batch = script.broker.handlers[RequestCode.BATCH_ACK_MESSAGE]
        script.add(*range(10))
        async with hearing(script, runtime, Heard()):
            await world.sleep(2)
            assert len(script.acked) == 10
            assert script.asked(RequestCode.ACK_MESSAGE) + script.asked(RequestCode.BATCH_ACK_MESSAGE) < 4
        script.broker.handlers[RequestCode.BATCH_ACK_MESSAGE] = refuse
        script.add(*range(20, 30))
        script.add(*range(30, 40))
        before = script.asked(RequestCode.BATCH_ACK_MESSAGE)
        async with hearing(script, runtime, Heard()):
            await world.sleep(2)
        assert len(script.acked) == 30
        assert script.asked(RequestCode.BATCH_ACK_MESSAGE) == before + 1
        script.broker.handlers[RequestCode.BATCH_ACK_MESSAGE] = batch

    play_pop(scene)


def test_an_ack_without_an_answer_is_sent_again() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        ack = script.broker.handlers[RequestCode.ACK_MESSAGE]
        script.broker.handlers[RequestCode.ACK_MESSAGE] = lambda connection, request: None
        script.add(4)
        async with hearing(script, runtime, Heard()):
            await world.sleep(2)
            assert script.acked == []
            script.broker.handlers[RequestCode.ACK_MESSAGE] = ack
            await world.sleep(5)
            assert script.acked == [("T", 4)]

    play_pop(scene)


def test_a_batch_of_acks_names_no_more_pops_than_a_broker_takes() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        handlers, offsets = script.broker.handlers, list(range(2 * MAX_BATCH_ACK_ENTRIES + 50))
        stored, slow = handlers[RequestCode.BATCH_ACK_MESSAGE], asyncio.Event()
        sizes: list[int] = []

        def batch(connection: Connection, request: RemotingCommand) -> Any:
            sizes.append(len(decode_body(request, BatchAckMessageRequestBody).acks))
            return stored(connection, request)

        handlers[RequestCode.BATCH_ACK_MESSAGE] = batch
        for offset in offsets:
            script.add(offset)
        seen: list[int] = []

        async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            seen.extend(bodies(messages))
            await slow.wait()
            return OK

        consumer = popping(script, runtime, consume_thread_max=1_000, pop_threshold_for_queue=1_000)
        consumer.register_message_listener(listener)
        async with consumer:
            await world.sleep(2)
            assert sorted(seen) == offsets
            slow.set()
            await world.sleep(2)
        assert sorted(offset for _, offset in script.acked) == offsets
        assert max(sizes) == MAX_BATCH_ACK_ENTRIES

    play_pop(scene)


def test_acks_that_a_broker_refuses_together_go_out_alone() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.broker.handlers[RequestCode.BATCH_ACK_MESSAGE] = failing(ResponseCode.SYSTEM_ERROR)
        script.add(*range(10))
        async with hearing(script, runtime, Heard()):
            await world.sleep(2)
            assert sorted(script.acked) == [("T", offset) for offset in range(10)]
            assert script.asked(RequestCode.BATCH_ACK_MESSAGE) == 1

    play_pop(scene)


@pytest.mark.parametrize("code", [ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE])
def test_acks_that_a_busy_broker_refuses_are_sent_again_while_the_messages_are_invisible(
    code: ResponseCode,
) -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        handlers = script.broker.handlers
        codes = (RequestCode.ACK_MESSAGE, RequestCode.BATCH_ACK_MESSAGE)
        good: dict[int, Any] = {each: handlers[each] for each in codes}
        busy: dict[int, Any] = dict.fromkeys(good, failing(code))
        handlers |= busy
        script.add(*range(10), invisible=20_000)
        async with hearing(script, runtime, Heard()):
            await world.sleep(15)
            assert script.acked == []
            handlers |= good
            await world.sleep(2)
            assert sorted(script.acked) == [("T", offset) for offset in range(10)]
            handlers |= busy
            script.add(20, invisible=20_000)
            await world.sleep(40)
            asked = script.asked(RequestCode.ACK_MESSAGE)
            handlers |= good
            await world.sleep(20)
            assert script.asked(RequestCode.ACK_MESSAGE) == asked
        assert len(script.acked) == 10

    play_pop(scene)


@pytest.mark.parametrize(
    ("result", "times", "seconds"),
    [
        (ConsumeConcurrentlyStatus.RECONSUME_LATER, 0, 10),
        (None, 1, 30),
        (ConsumeConcurrentlyStatus.RECONSUME_LATER, 15, 7_200),
        (ReconsumeLater(delay_level=3), 0, 120),
        (ReconsumeLater(delay_level=99), 0, 7_200),
    ],
)
def test_a_failed_message_becomes_visible_after_a_delay(result: Any, times: int, seconds: int) -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(5, times=times)
        async with hearing(script, runtime, Heard(_5=result)):
            await world.sleep(5)
        assert [change[1:] for change in script.changes] == [(5, 1_000 * seconds)]
        assert script.acked == []

    play_pop(scene)


def test_a_listener_may_fail_the_end_of_its_batch() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(1, 2, 3)
        heard = Heard(_1=ReconsumeLater(consumed=1))
        async with hearing(script, runtime, heard, consume_message_batch_max_size=3):
            await world.sleep(5)
        assert script.acked == [("T", 1)]
        assert sorted(change[1] for change in script.changes) == [2, 3]

    play_pop(scene)


@pytest.mark.parametrize(("result", "times"), [(None, 16), (ReconsumeLater(delay_level=-1), 0)])
def test_the_last_attempt_ends_in_the_dead_letter_topic(result: Any, times: int) -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        sent: list[tuple[int, int]] = []

        def send_back(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            header = request.decode_header(ConsumerSendMsgBackRequestHeader)
            sent.append((header.offset, header.delay_level))
            return RemotingCommand(ResponseCode.SUCCESS)

        script.broker.handlers[RequestCode.CONSUMER_SEND_MSG_BACK] = send_back
        script.add(5, times=times)
        async with hearing(script, runtime, Heard(_5=result)):
            await world.sleep(5)
        assert sent == [(5_000, -1)]
        assert script.acked == [("T", 5)]
        assert script.changes == []

    play_pop(scene)


def test_a_slow_listener_has_its_message_renewed_and_acknowledges_the_new_handle() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(9, invisible=10_000)
        heard = Heard()
        heard.seconds = 33.0
        async with hearing(script, runtime, heard, pop_invisible_time=10_000):
            await world.sleep(32)
            assert script.acked == []
            await world.sleep(3)
            assert script.acked == [("T", 9)]
        gaps = [
            later[0] - earlier[0] for earlier, later in zip(script.changes, script.changes[1:], strict=False)
        ]
        assert all(gap < 10 for gap in gaps)
        assert {change[1:] for change in script.changes} == {(9, 10_000)}
        assert heard.bodies == [9]

    play_pop(scene)


def test_a_listener_that_never_ends_is_given_up_after_consume_timeout() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(9, invisible=10_000)
        heard = Heard()
        heard.seconds = 200.0
        async with hearing(script, runtime, heard, pop_invisible_time=10_000, consume_timeout=1):
            await world.sleep(210)
        assert script.changes[-1][0] < 70
        assert script.acked == []

    play_pop(scene)


def test_a_result_after_the_invisible_time_is_discarded() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.broker.handlers[RequestCode.CHANGE_MESSAGE_INVISIBLETIME] = refuse
        script.add(9, invisible=10_000)
        heard = Heard()
        heard.seconds = 12.0
        async with hearing(script, runtime, heard, pop_invisible_time=10_000):
            await world.sleep(15)
        assert heard.bodies == [9]
        assert script.acked == []

    play_pop(scene)


def test_a_shutdown_makes_held_messages_visible_at_once() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(1, 2, 3)
        never = asyncio.Event()
        seen: list[int] = []

        async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            seen.extend(bodies(messages))
            if seen != [1]:
                await never.wait()
            return OK

        consumer = popping(script, runtime, consume_thread_max=1)
        consumer.register_message_listener(listener)
        async with consumer:
            await world.sleep(2)
        assert script.acked == [("T", 1)]
        assert sorted(change[1:] for change in script.changes) == [(2, 1), (3, 1)]
        assert world.now < 4

    play_pop(scene)


def test_a_shutdown_waits_for_a_renewal_before_it_hands_the_message_back() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        code = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        change = script.broker.handlers[code]
        handles: list[ExtraInfo] = []
        answered: list[int] = []

        def slowly(connection: Connection, request: RemotingCommand) -> None:
            handles.append(
                parse_extra_info(request.decode_header(ChangeInvisibleTimeRequestHeader).extra_info)
            )

            def answer() -> None:
                response = change(connection, request)
                assert isinstance(response, RemotingCommand)
                answered.append(script.broker.runtime.clock.now_ms())
                connection.reply(request, response)

            script.broker.runtime.timers.call_later(1.0, answer)

        script.broker.handlers[code] = slowly
        script.add(1, invisible=10_000)
        never = asyncio.Event()

        async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            await never.wait()
            return OK

        consumer = popping(script, runtime, pop_invisible_time=10_000)
        consumer.register_message_listener(listener)
        async with consumer:
            while not handles:
                await world.sleep(0.1)
        assert [change[1:] for change in script.changes] == [(1, 10_000), (1, 1)]
        assert handles[1].pop_time == answered[0]

    play_pop(scene)


def test_too_many_messages_without_a_result_stop_the_popping() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        for number in range(20):
            script.add(*range(10 * number, 10 * number + 10))
        heard = Heard()
        heard.seconds = 20.0
        async with hearing(script, runtime, heard, pop_threshold_for_queue=30, consume_thread_max=1):
            await world.sleep(10)
            assert len(script.pops) == 4

    play_pop(scene)


def test_the_consumer_sets_the_mode_once_and_then_follows_the_broker() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        queues = [MessageQueueAssignment(MessageQueue("T", "broker-a", number), PULL) for number in range(4)]
        script.assigned = queues
        script.broker.stored = dict.fromkeys(range(4), 0)
        script.add(1)
        heard = Heard()
        async with hearing(script, runtime, heard) as consumer:
            await world.sleep(5)
            assert script.modes == ["POP"]
            assert heard.bodies == [1]
            # An administrator switches the group to pulling, and back.
            script.assigned = queues
            await world.sleep(25)
            owned = [queue.queue_id for queue in consumer.process_queues if queue.topic == "T"]
            assert sorted(owned) == [0, 1, 2, 3]
            assert "%RETRY%G_T" in consumer.subscriptions
            pops = len(script.pops)
            await world.sleep(30)
            assert len(script.pops) == pops
            script.assigned = [MessageQueueAssignment(MessageQueue("T", "broker-a", -1), POP)]
            await world.sleep(25)
            assert not [queue for queue in consumer.process_queues if queue.topic == "T"]
            assert "%RETRY%G_T" not in consumer.subscriptions
            assert len(script.pops) > pops
            assert script.modes == ["POP"]

    play_pop(scene)


@pytest.mark.parametrize("silence", [None, "refuse", "unknown"])
def test_a_consumer_keeps_its_queues_if_the_broker_cannot_tell(silence: str | None) -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        heard = Heard()
        async with hearing(script, runtime, heard):
            await world.sleep(5)
            handlers = script.broker.handlers
            match silence:
                case None:
                    handlers[RequestCode.QUERY_ASSIGNMENT] = lambda connection, request: None
                case "refuse":
                    handlers[RequestCode.QUERY_ASSIGNMENT] = refuse
                case _:
                    script.assigned = None
            await world.sleep(60)
            script.add(3)
            await world.sleep(20)
            assert heard.bodies == [3]

    play_pop(scene)


def test_a_broker_that_serves_no_pop_refuses_the_start() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.broker.handlers[RequestCode.QUERY_ASSIGNMENT] = refuse
        consumer = popping(script, runtime)
        with pytest.raises(
            ClientError, match=r"broker-a at .* serves no consumers that pop: .*request_mode='pull'"
        ):
            await consumer.start()
        await consumer.shutdown()

    play_pop(scene)


def bad_responses(script: PopScript) -> list[RemotingCommand]:
    """Return responses that a broker must not send."""
    good = record(1, b"1")
    ck = b"POP_CK\x01%s"
    retried = record(2, b"2", properties=ck % b"5 6 7 x 1 broker-a 0 2")
    return [
        RemotingCommand(ResponseCode.SYSTEM_ERROR, remark="wrong"),
        RemotingCommand(ResponseCode.POLLING_FULL),
        RemotingCommand(ResponseCode.SUCCESS, None, good),
        RemotingCommand(ResponseCode.SUCCESS, PopMessageResponseHeader(0, 0, 0, 0), b"no record"),
        script.response(good, 60_000, "garbage", "0 0 1"),
        script.response(good, 60_000, "0 0 1;0 0 2", "0 0 1"),
        script.response(good, 60_000, "0 1 1", "0 1 1"),
        script.response(good, 60_000, "0 0 1", "0 0 99"),
        script.response(good, 60_000, "0 0 1", None),
        script.response(retried, 60_000, "1 0 2", "1 0 2"),
        script.response(b"", 60_000, "0 0 1", "0 0 1"),
    ]


def test_bad_answers_leave_the_consumer_alive(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.responses = bad_responses(script)
        script.add(8)
        heard = Heard()
        async with hearing(script, runtime, heard):
            await world.sleep(60)
        assert heard.bodies == [8]
        assert script.acked == [("T", 8)]

    with caplog.at_level(logging.WARNING):
        play_pop(scene)
    assert not [entry for entry in caplog.records if entry.levelno > logging.WARNING or entry.exc_info]
    assert "has no readable handle" in caplog.text


def test_a_handle_that_a_producer_wrote_is_not_used() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(3, properties=b"POP_CK\x015 6 7 8 1 elsewhere 0 77")
        async with hearing(script, runtime, Heard()):
            await world.sleep(2)
        assert script.acked == [("T", 3)]

    play_pop(scene)


def test_messages_of_a_retry_topic_are_acknowledged_there() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        for kind, offset in ((1, 4), (2, 5)):
            handle = b"%d 1000 60000 2 %d broker-a 0 %d 999" % (offset, kind, offset)
            stream = record(offset, b"%d" % offset, properties=b"POP_CK\x01" + handle)
            script.responses.append(
                script.response(stream, 60_000, f"{kind} 0 {offset}", f"{kind} 0 {offset}")
            )
        heard = Heard()
        async with hearing(script, runtime, heard):
            await world.sleep(2)
        assert sorted(heard.bodies) == [4, 5]
        # A batch names the topic that was popped.
        assert {offset for _, offset in script.acked} == {4, 5}
        assert {topic for topic, _ in script.acked} <= {"%RETRY%G_T", "%RETRY%G+T", "T"}

    play_pop(scene)


def test_messages_whose_tag_only_has_the_right_hash_are_acknowledged_unseen() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        script.add(1, properties=b"TAGS\x01BB")
        script.add(2, properties=b"TAGS\x01Aa")
        heard = Heard()
        consumer = hearing(script, runtime, heard)
        consumer.subscribe("T", "Aa")
        async with consumer:
            await world.sleep(3)
        assert heard.bodies == [2]
        assert sorted(script.acked) == [("T", 1), ("T", 2)]

    play_pop(scene)


def test_filtered_messages_of_a_retry_topic_are_acknowledged_there() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        handle = b"4 1000 60000 2 1 broker-a 0 4 999"
        # A broker with popResponseReturnActualRetryTopic=true names the retry topic.
        stream = record(4, b"4", topic="%RETRY%G_T", properties=b"TAGS\x01BB\x02POP_CK\x01" + handle)
        script.responses.append(script.response(stream, 60_000, "1 0 4", "1 0 4"))
        consumer = hearing(script, runtime, heard := Heard())
        consumer.subscribe("T", "Aa")
        async with consumer:
            await world.sleep(2)
        assert heard.bodies == []
        assert script.acked == [("%RETRY%G_T", 4)]

    play_pop(scene)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"message_model": "broadcasting"}, "a broadcasting consumer cannot pop"),
        ({"allocate_strategy": AllocateConsistentHash()}, "do not know the strategy CONSISTENT_HASH"),
        ({"pop_invisible_time": 4_999}, r"pop_invisible_time Out of range \[5000, 300000\]"),
        ({"pop_batch_nums": 33}, r"pop_batch_nums Out of range \[1, 32\]"),
        ({"pop_threshold_for_queue": 0}, "pop_threshold_for_queue Out of range"),
        ({"request_mode": "push"}, "request_mode"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ClientError, match=problem):
        PushConsumer("G", "127.0.0.1:1", **{"request_mode": "pop", **options})


def test_an_orderly_listener_cannot_pop() -> None:
    async def scene(world: World, script: PopScript, runtime: Runtime) -> None:
        consumer = popping(script, runtime)
        consumer.register_orderly_listener(lambda messages, context: None)
        with pytest.raises(ClientError, match="a consumer with an orderly listener cannot pop"):
            await consumer.start()

    play_pop(scene)
