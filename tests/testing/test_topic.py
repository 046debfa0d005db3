"""``Topic``: what a test sends, and what it reads back."""

from dataclasses import dataclass

import pytest

from rewindmq import Message, MessageQueue, RewindMQError
from rewindmq.testing import KitError, Rmq


@dataclass
class _Order:
    customer: str
    amount: int


async def test_payloads_are_bytes_text_json_values_and_messages(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    message = Message(topic.name, b"a message", tags="paid", keys="k")
    sent = await topic.send_many([b"bytes", "täxt", {"n": [1, None]}, _Order("ann", 3), 7, message])
    assert [each.body for each in sent] == [
        b"bytes",
        "täxt".encode(),
        b'{"n":[1,null]}',
        b'{"customer":"ann","amount":3}',
        b"7",
        b"a message",
    ]
    assert sent[3].json() == {"customer": "ann", "amount": 3}
    assert (sent[5].tags, sent[5].keys) == ("paid", "k")


async def test_a_topic_reads_back_what_was_sent(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many(range(100))
    assert await topic.read() == topic.sent
    assert len(topic.sent) == 100


async def test_queue_and_offset_of_each_message_of_a_batch_are_those_that_the_broker_gave(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=2)
    await topic.send_many(range(600))
    stored = {message.id: (message.queue, message.offset) for message in await topic.read()}
    assert {message.id: (message.queue, message.offset) for message in topic.sent} == stored


async def test_equal_keys_go_to_one_queue_in_the_order_of_the_payloads(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many([_Order(f"customer {n % 7}", n) for n in range(70)], key="customer")
    of: dict[str, list[tuple[MessageQueue, int]]] = {}
    for message in topic.sent:
        of.setdefault(message.json()["customer"], []).append((message.queue, message.json()["amount"]))
    for places in of.values():
        assert len({queue for queue, _ in places}) == 1
        amounts = [amount for _, amount in places]
        assert amounts == sorted(amounts)
    assert {message.keys for message in topic.sent} == {"customer " + str(n) for n in range(7)}


async def test_a_key_may_be_a_function(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    sent = await topic.send_many([b"a1", b"b1", b"a2"], key=lambda payload: payload[:1].decode())
    assert sent[0].queue == sent[2].queue
    assert sent[0].keys == "a"


async def test_a_key_that_the_payload_does_not_have_is_refused(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    with pytest.raises(KitError, match="key='customer' names a field that the payload b'x' does not have"):
        await topic.send(b"x", key="customer")


async def test_a_payload_without_a_json_form_is_refused(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    with pytest.raises(KitError, match="a payload is bytes, text, a JSON value or a Message"):
        await topic.send(object())
    assert await topic.read() == []


async def test_a_message_of_another_topic_is_refused(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    with pytest.raises(KitError, match=f"build it with the topic's name, '{topic.name}'"):
        await topic.send(Message("orders", b"x"))


async def test_a_message_goes_to_the_queue_that_the_test_names(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=3)
    assert (await topic.send(b"x", queue=2)).queue.queue_id == 2
    with pytest.raises(KitError, match="the topic has no queue 3"):
        await topic.send(b"x", queue=3)


async def test_a_batch_that_a_broker_does_not_take_fails_as_one_message_does(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    await topic.send(b"x")
    async with rmq.down("broker-a"):
        with pytest.raises(RewindMQError):
            await topic.send_many(range(8))
    assert await topic.read() == topic.sent


async def test_a_mark_divides_what_was_sent_before_from_what_was_sent_after(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    before = await topic.send_many(range(10))
    mark = await rmq.mark()
    after = await topic.send_many(range(10))
    assert sorted(map(repr, topic.since(mark))) == sorted(map(repr, after))
    assert len(topic.sent) == len(before) + len(after)


@pytest.mark.parametrize("queues", [0, 65_536])
async def test_a_number_of_queues_out_of_range_is_refused(rmq: Rmq, queues: int) -> None:
    with pytest.raises(KitError, match=f"queues must be 1 to 65535, not {queues}"):
        await rmq.topic("orders", queues=queues)


async def test_names_of_two_tests_differ(rmq: Rmq) -> None:
    assert (await rmq.topic("orders")).name != "orders"
    assert (await rmq.topic(rmq.name("exact") + "x", exact=True)).name == rmq.name("exact") + "x"
