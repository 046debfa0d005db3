"""Output of the message queries and the trace query (docs/spec/admin.md 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)
from rewindmq.client.msg_trace.records import (
    DEFAULT_TRACE_TOPIC,
    EndTransaction,
    Pub,
    SubAfter,
    SubBefore,
    encode,
)
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.profile import Profile
from tests.client.admin.support import TOPIC
from tests.support.answers import present
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

pytestmark = pytest.mark.usefixtures("utc")

ROW = "%-50s %4s %40s"


async def send(stage: SimStage, *keys: str) -> list[str]:
    """Send a message with each of the keys, to all queues in turn, and return the messages' unique ids."""
    await stage.create_topic(TOPIC, 2)
    runtime = stage.world.runtime("10.0.9.2")
    ids = []
    async with Producer("senders", stage.namesrv, runtime=runtime, profile=stage.profile) as producer:
        queues = await producer.fetch_publish_message_queues("TopicTest")
        for number, key in enumerate(keys):
            queue = queues[number % len(queues)]
            result = await producer.send(Message("TopicTest", b"x", "TagA", key), queue=queue)
            ids.append(result.msg_id)
            await runtime.timers.sleep(1)
    return ids


@played(brokers=2)
async def test_a_query_by_key_asks_all_brokers_and_drops_other_keys_with_the_same_hash(
    stage: SimStage,
) -> None:
    ids = await send(stage, "Aa", "BB", "x Aa y", "Aa", "Aa")
    assert await stage.run("queryMsgByKey -t TopicTest -k Aa") == [
        ROW % ("#Message ID", "#QID", "#Offset"),
        ROW % (ids[0], 0, 0),
        ROW % (ids[2], 0, 0),
        ROW % (ids[3], 1, 0),
        ROW % (ids[4], 0, 1),
    ]
    rows = await stage.data("queryMsgByKey -t TopicTest -k Aa")
    assert [(row["brokerName"], row["msgId"]) for row in rows] == [
        ("broker-a", ids[0]),
        ("broker-b", ids[2]),
        ("broker-b", ids[3]),
        ("broker-a", ids[4]),
    ]


@played()
async def test_a_query_by_key_drops_messages_of_other_topics_with_the_same_hash(stage: SimStage) -> None:
    # "AaTopic#k" and "BBTopic#k" have the same hash, so the broker returns both messages.
    runtime = stage.world.runtime("10.0.9.2")
    async with Producer("senders", stage.namesrv, runtime=runtime) as producer:
        sent = {}
        for topic in ("AaTopic", "BBTopic"):
            await stage.create_topic(topic, 1)
            sent[topic] = (await producer.send(Message(topic, topic.encode(), keys="k"))).msg_id
    for topic, message_id in sent.items():
        (row,) = await stage.data(f"queryMsgByKey -t {topic} -k k")
        assert row["msgId"] == message_id
    admin = await stage.admin()
    assert [found.topic for found in await admin.messages.query_message("BBTopic", "k")] == ["BBTopic"]
    # The id of another topic's message is no id of this topic.
    with pytest.raises(ResponseError) as refused:
        await admin.messages.query_message_by_unique_key("AaTopic", sent["BBTopic"])
    assert refused.value.code == ResponseCode.NO_MESSAGE


@pytest.mark.parametrize("command", ["queryMsgByKey -t TopicTest -k", "queryMsgByUniqueKey -t TopicTest -i"])
@played()
async def test_a_query_without_a_match_fails_with_208(stage: SimStage, command: str) -> None:
    await send(stage, "a")
    with pytest.raises(ResponseError) as refused:
        await stage.run(f"{command} nothing")
    assert refused.value.code == 208


@played()
async def test_a_query_by_unique_key_describes_the_message(stage: SimStage) -> None:
    ids = await send(stage, "a b", "c")
    lines = await stage.run(f"queryMsgByUniqueKey -t TopicTest -i {ids[0]}")
    assert lines[:3] == [
        f"{'Topic:':<20} TopicTest",
        f"{'Tags:':<20} [TagA]",
        f"{'Keys:':<20} [a b]",
    ]
    assert f"{'Queue Offset:':<20} 0" in lines
    assert lines[-1] == ""
    assert f"{'Message Body:':<20} 1 bytes as stored" in lines
    (row,) = await stage.data(f"queryMsgByUniqueKey -t TopicTest -i {ids[1]} -a")
    assert (row["msgId"], row["queueId"], row["properties"]["KEYS"]) == (ids[1], 1, "c")


@played()
async def test_a_compaction_topic_is_created_and_its_attribute_printed(stage: SimStage) -> None:
    made = "updateTopic -c DefaultCluster -t Prices -r 1 -w 1 -a +cleanup.policy=COMPACTION"
    lines = await stage.run(made)
    assert lines[-1].endswith(", attributes={+cleanup.policy=COMPACTION}]")
    assert present(stage.brokers["broker-a"].context.tables.topics.find("Prices")).attributes == {
        "cleanup.policy": "COMPACTION"
    }
    with pytest.raises(ResponseError) as refused:
        await stage.run("updateTopic -c DefaultCluster -t Prices -a +cleanup.policy=DELETE")
    assert "unchangeable attribute" in refused.value.remark
    with pytest.raises(RewindMQError, match="format is wrong: cleanup"):
        await stage.run("updateTopic -c DefaultCluster -t Other -a cleanup.policy=COMPACTION")


@played(profile=Profile.V53)
async def test_attributes_are_set_and_removed(stage: SimStage) -> None:
    topics = stage.brokers["broker-a"].context.tables.topics
    make = "updateTopic -c DefaultCluster -t T -r 1 -w 1"
    for option, after in (
        ("-a +message.type=FIFO,+reserve.time=5", {"message.type": "FIFO", "reserve.time": "5"}),
        ("", {"message.type": "FIFO", "reserve.time": "5"}),
        ("-a=-message.type", {"reserve.time": "5"}),
        ("--attributes=-reserve.time", None),
    ):
        await stage.run(f"{make} {option}")
        assert present(topics.find("T")).attributes == after


@played()
async def test_queries_by_id_and_by_offset_print_the_same_message(stage: SimStage) -> None:
    ids = await send(stage, "a", "b", "c")
    [found] = await stage.data(f"queryMsgByUniqueKey -t TopicTest -i {ids[2]}")
    by_offset = await stage.run("queryMsgByOffset -t TopicTest -b broker-a -i 0 -o 1")
    assert by_offset == await stage.run(f"queryMsgById -i {found['offsetMsgId']}")
    assert by_offset[0] == f"{'OffsetID:':<20} {found['offsetMsgId']}"
    assert f"{'Queue Offset:':<20} 1" in by_offset
    with pytest.raises(ResponseError, match=r"no message at offset 2: the queue holds \[0, 2\)"):
        await stage.run("queryMsgByOffset -t TopicTest -b broker-a -i 0 -o 2")
    with pytest.raises(RewindMQError):
        await stage.run("queryMsgByOffset -t TopicTest -b unknown -i 0 -o 0")


@played()
async def test_a_trace_has_the_send_and_every_listener_call_of_a_group(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.world.sleep(1)
    runtime = stage.world.runtime("10.0.9.2")
    async with Producer("senders", stage.namesrv, runtime=runtime, enable_msg_trace=True) as producer:
        result = await producer.send(Message("TopicTest", b"x"))
    calls = []

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        calls.append(messages)
        await runtime.timers.sleep(0.25)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(
        "readers",
        stage.namesrv,
        runtime=stage.world.runtime("10.0.2.1"),
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        enable_msg_trace=True,
    )
    consumer.subscribe("TopicTest")
    consumer.register_message_listener(listener)
    async with consumer:
        await stage.world.sleep(5)
    pub, sub = (line for line in await stage.run(f"queryMsgTraceById -i {result.msg_id}") if " 20" in line)
    assert pub.split()[:3] == ["Pub", "senders", "10.0.9.2"]
    assert pub.split()[-1] == "success"
    assert sub.split()[:3] == ["Sub", "readers", "10.0.2.1"]
    assert sub.split()[-2:] == ["250ms", "success"]
    with pytest.raises(ResponseError) as refused:
        await stage.run("queryMsgTraceById -i nothing")
    assert refused.value.code == 208


def test_trace_steps_of_the_same_millisecond_are_in_their_only_possible_order(play: RunScenario) -> None:
    """The order does not depend on when the clients sent their trace records."""
    at = 1_700_000_000_000
    ended = EndTransaction(at, "R", "senders", "T", "ID", "", "k", "", 0, "TX", "COMMIT_MESSAGE", False)
    steps = (
        SubBefore(at, "R", "readers", "REQUEST", "ID", 0, "k"),
        SubAfter("REQUEST", "ID", 1, True, "k"),
        ended,
        Pub(at, "R", "senders", "T", "ID", "", "k", "", 1, 1, 0, "", True),
    )

    async def scenario(stage: SimStage) -> None:
        async with Producer("tracers", stage.namesrv, runtime=stage.world.runtime("10.0.9.2")) as producer:
            for step in steps:
                await producer.send(Message(DEFAULT_TRACE_TOPIC, encode(step).encode(), keys="ID"))
        lines = await (await stage.admin()).messages.query_message_trace("ID")
        assert [line.kind for line in lines] == ["Pub", "EndTransaction", "Sub"]

    play(scenario)
