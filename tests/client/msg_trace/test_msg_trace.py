"""Message trace: records of sends and listener calls, which disturb neither."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq import ConsumeConcurrentlyStatus, Message, MessageExt, Producer, PushConsumer
from rewindmq.client.msg_trace import dispatcher as dispatching
from rewindmq.client.msg_trace.records import (
    COMMITTED,
    FAILED,
    HALF,
    EndTransaction,
    Pub,
    SubAfter,
    SubBefore,
    TraceError,
    decode,
    encode,
    trace_keys,
)
from rewindmq.client.produce.transaction import LocalTransactionState
from rewindmq.client.produce.transaction_producer import TransactionProducer
from rewindmq.protocol.limits import MAX_GROUP_LENGTH
from rewindmq.protocol.profile import Profile
from tests.client.inbox import Inbox
from tests.support.clients import OK
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

EXAMPLES = settings(derandomize=True, deadline=None, database=None, max_examples=60)
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
text = st.text(st.characters(exclude_characters="\x01\x02"), max_size=12)
number = st.integers(-(2**63), 2**63 - 1)
records = st.one_of(
    st.builds(
        Pub,
        number,
        text,
        text,
        text,
        text,
        text,
        text,
        text,
        number,
        number,
        number,
        text,
        st.booleans(),
        text,
    ),
    st.builds(SubBefore, number, text, text, text, text, number, text),
    st.builds(SubAfter, text, text, number, st.booleans(), text, number, number, text),
    st.builds(
        EndTransaction, number, text, text, text, text, text, text, text, number, text, text, st.booleans()
    ),
)


@EXAMPLES
@given(st.lists(records, max_size=4))
def test_records_are_read_back_as_they_were_written(wanted: list[Any]) -> None:
    assert decode("".join(map(encode, wanted))) == wanted


@EXAMPLES
@given(st.text(st.sampled_from("PubSBefrA\x01\x02 1tx"), max_size=60) | st.text(max_size=40))
def test_an_invalid_record_raises_only_a_trace_error(data: str) -> None:
    for line in (data, f"Pub\x01{data}", f"SubAfter\x01{data}", f"EndTransaction\x011\x01{data}"):
        try:
            decode(line)
        except TraceError as error:
            assert str(error)  # noqa: PT017 - any text may be either


def test_records_look_as_RocketMQ_writes_them() -> None:
    record = Pub(1, "DefaultRegion", "P", "T", "ID", "null", "k1 k2", "10.0.0.1:1", 5, 7, 0, "OFF", True)
    line = "Pub|1|DefaultRegion|P|T|ID|null|k1 k2|10.0.0.1:1|5|7|0|OFF|true\x02".replace("|", "\x01")
    assert encode(record) == line
    assert trace_keys(record) == ["ID", "k1", "k2"]
    assert decode("Pub\x011\x01R\x01P\x01T\x01ID\x01\x01\x01h\x015\x017\x010\x01true\x02")[0] == Pub(
        1, "R", "P", "T", "ID", "", "", "h", 5, 7, 0, "", True
    )
    assert decode("SubAfter\x01R1\x01ID\x017\x01true\x01null\x02Recall\x01x\x02") == [
        SubAfter("R1", "ID", 7, True, "null")
    ]


async def traces(stage: SimStage, key: str, topic: str = TRACE_TOPIC) -> list[Any]:
    """Return the records that the trace topic holds under a key."""
    admin = await stage.admin()
    found = await admin.messages.query_message(topic, key)
    return [
        record for message in found for record in decode(message.body.decode()) if key in trace_keys(record)
    ]


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@played()
async def test_a_message_is_traced_from_its_send_to_its_listener(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic()
    inbox = Inbox(stage.world)
    await stage.consume(inbox, enable_msg_trace=True)
    producer = await stage.producer(enable_msg_trace=True)
    result = await producer.send(Message("T", b"hello", "TagA", "order-7"))
    await stage.until(lambda: len(inbox.messages) == 1)
    await stage.world.sleep(3)
    pub, before, after = await traces(stage, result.msg_id)
    assert isinstance(pub, Pub)
    assert (pub.group, pub.topic, pub.tags, pub.keys, pub.body_length) == ("P", "T", "TagA", "order-7", 5)
    assert (pub.offset_msg_id, pub.success, pub.region) == (result.offset_msg_id, True, "DefaultRegion")
    assert pub.store_host == stage.brokers["broker-a"].address
    assert isinstance(before, SubBefore)
    assert isinstance(after, SubAfter)
    assert (before.group, after.group) == ("G", "G")
    assert before.request_id == after.request_id
    assert after.success
    assert after.timestamp >= before.timestamp >= pub.timestamp
    assert await traces(stage, "order-7") == [pub, before, after]


@played()
async def test_a_failed_call_is_traced_as_failed(stage: SimStage) -> None:
    await stage.create_topic()

    async def listener(messages: Any) -> ConsumeConcurrentlyStatus:
        if messages[0].reconsume_times:
            return OK
        raise RuntimeError("not now")

    consumer = await stage.consume(listener, enable_msg_trace=True, customized_trace_topic="MyTrace")
    producer = await stage.producer()
    result = await producer.send(Message("T", b"hello"))
    await stage.world.sleep(20)
    afters = [
        record for record in await traces(stage, result.msg_id, "MyTrace") if isinstance(record, SubAfter)
    ]
    assert [(record.success, record.context_code) for record in afters] == [(False, FAILED), (True, 0)]
    assert consumer.trace is not None
    assert consumer.trace.dispatcher.discarded == 0


@played()
async def test_waiting_records_are_sent_before_a_producer_stops(stage: SimStage) -> None:
    await stage.create_topic()
    producer = await stage.producer(enable_msg_trace=True)
    results = [await producer.send(Message("T", b"%d" % n)) for n in range(50)]
    await producer.shutdown()
    for result in (results[0], results[-1]):
        assert len(await traces(stage, result.msg_id)) == 1


@played()
async def test_a_listener_that_stops_its_consumer_leaves_no_task_behind(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(1)
    consumer: PushConsumer
    stopped = asyncio.Event()

    async def listen(messages: Any) -> ConsumeConcurrentlyStatus:
        await consumer.shutdown()
        stopped.set()
        return OK

    consumer = stage.push_consumer(listen, enable_msg_trace=True)
    await consumer.start()
    await stopped.wait()
    await stage.world.sleep(0.1)
    mine = {name for task in asyncio.all_tasks() if "Trace" in (name := str(task.get_coro()))}
    assert mine == set()
    assert consumer.trace is not None
    assert consumer.trace.dispatcher.discarded == 1


def test_records_that_cannot_be_sent_are_counted_and_stop_no_producer(
    play: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "MAX_WAITING", 10)

    async def scene(stage: SimStage) -> None:
        await stage.create_topic()
        producer = await stage.producer(enable_msg_trace=True, customized_trace_topic="Nowhere")
        for number in range(30):
            await producer.send(Message("T", b"%d" % number))
        trace = producer._trace
        assert trace is not None
        assert trace.dispatcher.discarded == 20
        await stage.world.sleep(5)
        # The topic does not exist, so the records that had room are lost, too.
        assert trace.dispatcher.discarded == 30
        began = stage.world.now
        await producer.shutdown()
        assert stage.world.now - began < 4

    play(scene, auto_create_topic_enable=False)


class _Listener:
    """A listener that commits every transaction."""

    async def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.COMMIT_MESSAGE


@played()
async def test_the_end_of_a_transaction_is_traced(stage: SimStage) -> None:
    await stage.create_topic()
    runtime = stage.new_runtime()
    async with TransactionProducer(
        "P", stage.namesrv, runtime=runtime, listener=_Listener(), enable_msg_trace=True
    ) as producer:
        result = await producer.send_message_in_transaction(Message("T", b"order"))
    half, end = await traces(stage, result.send_result.msg_id)
    assert (half.message_type, half.topic) == (HALF, "T")
    assert isinstance(end, EndTransaction)
    assert (end.state, end.from_check, end.message_type) == ("COMMIT_MESSAGE", False, COMMITTED)


@played()
async def test_the_longest_group_name_can_be_traced(stage: SimStage) -> None:
    await stage.create_topic()
    group = "g" * MAX_GROUP_LENGTH
    runtime = stage.new_runtime()
    async with Producer(group, stage.namesrv, runtime=runtime, enable_msg_trace=True) as producer:
        result = await producer.send(Message("T", b"x"))
    [pub] = await traces(stage, result.msg_id)
    assert pub.group == group


@played()
async def test_an_untraced_client_sends_no_records(stage: SimStage) -> None:
    await stage.create_topic()
    consumer: PushConsumer = await stage.consume(Inbox(stage.world))
    await stage.fill(1)
    await stage.world.sleep(5)
    assert consumer.trace is None
    assert TRACE_TOPIC not in stage.brokers["broker-a"].context.tables.topics.names
