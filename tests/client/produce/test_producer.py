"""The producer with real servers under virtual time, and its errors."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from rewindmq import ClientError, Message, MessageQueue, Producer, SendStatus
from rewindmq.protocol import frame
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import (
    ConnectionLostError,
    RequestTimeoutError,
    ResponseError,
    UnreadableResponseError,
)
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.limits import MAX_EXT_FIELDS, MAX_HEADER_BYTES
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.race.sim import World
from tests.client.inbox import Inbox
from tests.client.scripted_broker import ScriptedBroker, play_scripted
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

ALL = list(Profile)


@played(brokers=2)
async def test_sends_go_round_all_queues(stage: SimStage) -> None:
    await stage.create_topic()
    producer = await stage.producer()
    results = [await producer.send(Message("T", b"x")) for _ in range(16)]
    assert {result.status for result in results} == {SendStatus.SEND_OK}
    queues = [result.message_queue for result in results]
    assert len(set(queues)) == 8
    assert all(queues.count(queue) == 2 for queue in queues)
    assert sorted(result.queue_offset for result in results) == [0] * 8 + [1] * 8
    assert len({result.msg_id for result in results}) == 16
    assert {result.region for result in results} == {"DefaultRegion"}


@pytest.mark.parametrize("profile", ALL)
@played(default_topic_queue_nums=8)
async def test_an_unknown_topic_is_created_from_the_template_with_four_queues(
    stage: SimStage, profile: Profile
) -> None:
    producer = await stage.producer()
    await asyncio.gather(*(producer.send(Message("Fresh", b"x")) for _ in range(20)))
    assert stage.brokers["broker-a"].context.tables.topics.find("Fresh") is not None
    assert len(await producer.fetch_publish_message_queues("Fresh")) == 4


@pytest.mark.parametrize("profile", ALL)
@played(brokers=2)
async def test_a_killed_broker_costs_no_message(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic()
    producer = await stage.producer()
    await producer.send(Message("T", b"x"))
    await stage.brokers["broker-b"].close()
    results = [await producer.send(Message("T", b"x")) for _ in range(20)]
    assert {result.message_queue.broker_name for result in results} == {"broker-a"}


@played(brokers=2)
async def test_a_broker_that_comes_back_is_used_again(stage: SimStage) -> None:
    await stage.create_topic()
    producer = await stage.producer()
    await producer.send(Message("T", b"x"))
    await stage.brokers["broker-b"].close()
    await stage.world.sleep(31)
    assert len(await producer.fetch_publish_message_queues("T")) == 4
    await stage.start_broker("broker-b", default_topic_queue_nums=4)
    await stage.world.sleep(31)
    names = {(await producer.send(Message("T", b"x"))).message_queue.broker_name for _ in range(8)}
    assert names == {"broker-a", "broker-b"}


@played()
async def test_oneway_selector_and_chosen_queue(stage: SimStage) -> None:
    await stage.create_topic()
    inbox = Inbox(stage.world)
    await stage.consume(inbox)
    producer = await stage.producer()
    await producer.send_oneway(Message("T", b"oneway"))

    def pick(queues: Sequence[MessageQueue], message: Message, arg: int) -> MessageQueue:
        return queues[arg]

    def pick_none(queues: Sequence[MessageQueue], message: Message, arg: object) -> Any:
        return None

    chosen = await producer.send_with_selector(Message("T", b"selected"), pick, 3)
    assert chosen.message_queue.queue_id == 3
    queue = MessageQueue("T", "broker-a", 2)
    assert (await producer.send(Message("T", b"direct"), queue=queue)).message_queue == queue
    await stage.until(lambda: len(inbox.messages) == 3)
    assert set(inbox.bodies) == {b"oneway", b"selected", b"direct"}
    with pytest.raises(ClientError, match="select message queue return null"):
        await producer.send_with_selector(Message("T", b"x"), pick_none)
    with pytest.raises(ClientError, match="select message queue threw exception"):
        await producer.send_with_selector(Message("T", b"x"), pick, 99)


def test_a_oneway_message_is_not_lost_at_a_broker_without_msgpack(
    play: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The producer would not notice that the broker closed the connection."""
    monkeypatch.delitem(frame._DECODE_HEADER, SerializeType.MSGPACK)

    async def scene(stage: SimStage) -> None:
        await stage.create_topic()
        producer = await stage.producer()
        await producer.send_oneway(Message("T", b"oneway"))
        inbox = Inbox(stage.world)
        await stage.consume(inbox)
        await stage.until(lambda: inbox.bodies == [b"oneway"])

    play(scene)


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_a_batch_lands_in_one_queue_with_an_id_per_message(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic()
    inbox = Inbox(stage.world)
    await stage.consume(inbox)
    producer = await stage.producer()
    messages = [Message("T", b"%d" % number, "TagA", f"k{number}") for number in range(5)]
    result = await producer.send_batch(messages)
    assert result.status is SendStatus.SEND_OK
    ids = result.msg_id.split(",")
    assert ids == [message.unique_key for message in messages]
    assert len(result.offset_msg_id.split(",")) == 5
    await stage.until(lambda: len(inbox.messages) == 5)
    assert [message.queue_offset for message in inbox.messages] == list(range(5))
    assert [message.msg_id for message in inbox.messages] == ids
    assert [message.keys for message in inbox.messages] == [f"k{number}" for number in range(5)]


@pytest.mark.parametrize("kind", SerializeType)
def test_a_batch_whose_answer_has_a_large_header_is_stored_once(
    play: RunScenario, kind: SerializeType
) -> None:
    """RocketMQ 4.9.7 answers with a header of 330,198 bytes; the client refused those over 262,144."""

    async def scene(stage: SimStage) -> None:
        await stage.create_topic()
        producer = await stage.producer()
        messages = [Message("T", b"%d" % number) for number in range(10_000)]
        result = await producer.send_batch(messages)
        assert result.status is SendStatus.SEND_OK
        assert len(result.offset_msg_id) > MAX_HEADER_BYTES
        assert len(set(result.offset_msg_id.split(","))) == 10_000
        store = stage.brokers["broker-a"].context.store
        assert sum(store.max_offset("T", queue_id) for queue_id in range(4)) == 10_000

    play(scene, serialize_type=kind, store={"mapped_file_size_commit_log": 16 << 20})


@pytest.mark.parametrize(
    ("profile", "flag"), [(Profile.V42, 0x001), (Profile.V49, 0x301), (Profile.V53, 0x301)]
)
@played()
async def test_a_large_body_travels_compressed(stage: SimStage, profile: Profile, flag: int) -> None:
    await stage.create_topic()
    inbox = Inbox(stage.world)
    await stage.consume(inbox)
    producer = await stage.producer()
    small, large = b"s" * 4095, b"l" * 4096
    await producer.send(Message("T", small))
    await producer.send(Message("T", large))
    await stage.until(lambda: len(inbox.messages) == 2)
    by_size = sorted(inbox.messages, key=lambda message: len(message.stored_body))
    assert [message.sys_flag for message in by_size] == [flag, 0]
    assert zlib.decompress(by_size[0].stored_body) == large
    assert sorted(inbox.bodies) == [large, small]


@played()
async def test_what_a_producer_refuses(stage: SimStage) -> None:
    producer = await stage.producer()
    for message, words in [
        (Message("bad topic!", b"x"), "illegal characters"),
        (Message("../../x", b"x"), "illegal characters"),
        (Message("", b"x"), "topic is blank"),
        (Message("t" * 128, b"x"), "longer than topic max length"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "is forbidden"),
        (Message("T", b""), "body length is zero"),
        (Message("T", b"x" * (4 * 1024 * 1024 + 1)), "over max value"),
        (Message("T", b"x", properties={"a": "b\x01c"}), "separates properties"),
        (Message("T", b"x", properties={"a": "b" * 40_000}), "properties are over"),
    ]:
        with pytest.raises(ClientError, match=words):
            await producer.send(message)
    batches: list[tuple[list[Message], str]] = [
        ([], "batch is empty"),
        ([Message("T", b"x"), Message("U", b"x")], "topic of the messages in one batch"),
        ([Message("T", b"x", delay_level=3)], "TimeDelayLevel"),
        ([Message("%RETRY%G", b"x")], "Retry Group"),
        ([Message("T", b"x"), Message("T", b"x", wait_store_msg_ok=False)], "waitStoreMsgOK"),
        ([Message("T", b"x" * 3_000_000)] * 2, "over max value"),
    ]
    for messages, words in batches:
        with pytest.raises(ClientError, match=words):
            await producer.send_batch(messages)
    with pytest.raises(ClientError, match="started once"):
        await producer.start()
    await producer.shutdown()
    with pytest.raises(ClientError, match="SHUTDOWN_ALREADY"):
        await producer.send(Message("T", b"x"))


def test_a_missing_name_server_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with pytest.raises(ClientError, match=r"No name server address, please set it\."):
        Producer("P")
    with pytest.raises(ClientError, match="not of the form host:port"):
        Producer("P", "nowhere")
    with pytest.raises(ClientError, match="can not equal DEFAULT_PRODUCER"):
        Producer("DEFAULT_PRODUCER", "127.0.0.1:9876")
    with pytest.raises(ClientError, match="group is blank"):
        Producer(" ", "127.0.0.1:9876")


def test_an_unreachable_name_server_is_named_in_the_error() -> None:
    world = World()

    async def main() -> None:
        async with Producer("P", "10.0.0.99:9876", runtime=world.runtime()) as producer:
            with pytest.raises(ClientError, match=r"No route info of this topic: T \(.*10\.0\.0\.99:9876"):
                await producer.send(Message("T", b"x"))

    world.run(main())


@played()
async def test_a_send_fails_without_a_route_if_topics_are_not_created(stage: SimStage) -> None:
    await stage.brokers["broker-a"].close()
    producer = await stage.producer()
    with pytest.raises(ClientError, match=r"No route info of this topic: T$"):
        await producer.send(Message("T", b"x"))


@pytest.mark.parametrize(
    ("code", "profile", "tries"),
    [
        (ResponseCode.SYSTEM_ERROR, Profile.V49, 3),
        (ResponseCode.SERVICE_NOT_AVAILABLE, Profile.V49, 3),
        (ResponseCode.TOPIC_NOT_EXIST, Profile.V42, 3),
        (ResponseCode.MESSAGE_ILLEGAL, Profile.V49, 1),
        (ResponseCode.SYSTEM_BUSY, Profile.V49, 1),
        (ResponseCode.SYSTEM_BUSY, Profile.V53, 3),
        (ResponseCode.GO_AWAY, Profile.V53, 3),
    ],
)
def test_only_some_refusals_are_retried(code: ResponseCode, profile: Profile, tries: int) -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[RequestCode.SEND_MESSAGE_V2] = lambda connection, request: RemotingCommand(
            code, remark="no"
        )
        with pytest.raises(ResponseError, match=f"CODE: {int(code)}  DESC: no"):
            await producer.send(Message("T", b"x"))
        assert len(broker.times(RequestCode.SEND_MESSAGE_V2)) == tries

    play_scripted(scene, profile)


@pytest.mark.parametrize(("retries", "tries"), [(False, 1), (True, 3)])
def test_stored_but_not_flushed_is_a_result(retries: bool, tries: int) -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[RequestCode.SEND_MESSAGE_V2] = lambda connection, request: RemotingCommand(
            ResponseCode.FLUSH_DISK_TIMEOUT, SendMessageResponseHeader("id", 0, 5)
        )
        result = await producer.send(Message("T", b"x"))
        assert (result.status, result.queue_offset) == (SendStatus.FLUSH_DISK_TIMEOUT, 5)
        assert len(broker.times(RequestCode.SEND_MESSAGE_V2)) == tries

    play_scripted(scene, retry_another_broker_when_not_store_ok=retries)


def test_a_send_that_times_out_is_not_repeated() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[RequestCode.SEND_MESSAGE_V2] = lambda connection, request: None
        with pytest.raises(RequestTimeoutError):
            await producer.send(Message("T", b"x"), timeout=2.0)
        assert len(broker.times(RequestCode.SEND_MESSAGE_V2)) == 1

    play_scripted(scene)


# Answers that say "stored", in ways that no reader understands.
UNREADABLE = {
    "fields missing": {"msgId": "id"},
    "no number": {"msgId": "id", "queueId": "0", "queueOffset": "first"},
    "too many fields": {f"field{number}": "x" for number in range(MAX_EXT_FIELDS + 1)},
}


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("code", [ResponseCode.SUCCESS, ResponseCode.FLUSH_DISK_TIMEOUT])
def test_a_send_whose_answer_cannot_be_read_is_not_repeated(kind: str, code: ResponseCode) -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        for request in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE):
            broker.handlers[request] = lambda connection, request: RemotingCommand(
                code, ext_fields=dict(UNREADABLE[kind])
            )
        # The second send goes out with the parts that the first one prepared.
        for _ in range(2):
            with pytest.raises(UnreadableResponseError, match="cannot be read"):
                await producer.send(Message("T", b"x"))
        assert len(broker.times(RequestCode.SEND_MESSAGE_V2)) == 2
        with pytest.raises(UnreadableResponseError, match="cannot be read"):
            await producer.send_batch([Message("T", b"x"), Message("T", b"y")])
        assert len(broker.times(RequestCode.SEND_BATCH_MESSAGE)) == 1
        with pytest.raises(UnreadableResponseError, match="cannot be read"):
            await producer.request(Message("T", b"x"))
        assert len(broker.times(RequestCode.SEND_MESSAGE_V2)) == 3

    play_scripted(scene)


def test_a_send_whose_connection_breaks_is_repeated() -> None:
    def break_off(connection: Connection, request: RemotingCommand) -> None:
        connection.abort()

    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[RequestCode.SEND_MESSAGE_V2] = break_off
        with pytest.raises(ConnectionLostError):
            await producer.send(Message("T", b"x"))
        assert len(broker.times(RequestCode.SEND_MESSAGE_V2)) == 3

    # In a serialization type that is not negotiated, which would repeat the request itself.
    play_scripted(scene, serialize_type="json")


def test_two_producers_of_one_group_and_instance_are_refused() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        twin = Producer("P", broker.address, runtime=producer.runtime, instance_name="p1")
        with pytest.raises(ClientError, match=r"The producer group\[P\] has been created before"):
            await twin.start()
        other = Producer("P2", broker.address, runtime=producer.runtime, instance_name="p1")
        async with other:
            assert other.instance is producer.instance

    play_scripted(scene)
