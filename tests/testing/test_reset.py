"""``Group.reset``: a reset is accepted, the messages come again, and the offsets are stored."""

from datetime import UTC, datetime

import pytest

from rewindmq import ConsumeConcurrentlyStatus, Message, MessageExt, ResetMode
from rewindmq.testing import KitError, NotSeenError, Rmq


class _Balances:
    """An idempotent service: it applies each order once."""

    def __init__(self) -> None:
        self.amounts: dict[int, int] = {}

    def __call__(self, messages: list[MessageExt], context: object) -> None:
        for message in messages:
            number = int(message.body)
            self.amounts[number] = number


@pytest.mark.parametrize("mode", [None, "server"])
async def test_a_rewind_to_a_mark_redelivers_exactly_what_came_after_it(rmq: Rmq, mode: str | None) -> None:
    balances = _Balances()
    orders = await rmq.topic("orders", queues=4)
    await orders.send_many(range(10), key=lambda number: number % 3)
    mark = await rmq.mark()
    await orders.send_many(range(10, 20), key=lambda number: number % 3)
    async with rmq.orderly("balances", orders, balances) as group:
        await group.caught_up()
        before = dict(balances.amounts)
        reset = await group.reset(to=mark, mode=mode)
        assert await reset.redelivered() == orders.since(mark)
        assert reset.delivered == orders.since(mark)
        assert reset.modes == {"broker-a": ResetMode(mode or "fenced")}
        await reset.stored()
        assert balances.amounts == before
        group.assert_no_errors()


async def test_a_mark_is_exact_where_queues_have_no_message_after_it(rmq: Rmq) -> None:
    """RocketMQ 4.9 would redeliver the last message of such queues, the neighbour nearest in time."""
    topic = await rmq.topic("orders", queues=4)
    await topic.send_many(range(8))
    mark = await rmq.mark()
    only = await topic.send(b"only", queue=1)
    async with rmq.push("billing", topic) as billing:
        await billing.caught_up()
        reset = await billing.reset(to=mark)
        assert reset.modes == {"broker-a": ResetMode.FENCED}
        assert await reset.redelivered() == [only]
        with pytest.raises(KitError, match="a classic reset takes one time for all queues"):
            await billing.reset(to=mark, mode="classic")


async def test_a_reset_goes_to_the_begin_to_a_time_and_to_offsets(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    sent = await topic.send_many(range(6))
    async with rmq.push("billing", topic) as billing:
        await billing.caught_up()
        assert await (await billing.reset("begin")).redelivered() == sent
        await billing.caught_up()
        at = await billing.reset(datetime(2020, 1, 1, tzinfo=UTC))
        assert await at.redelivered() == sent
        await billing.caught_up()
        reset = await billing.reset({sent[0].queue: 4})
        assert await reset.redelivered() == sent[4:]


async def test_a_reset_to_the_end_skips_what_was_not_consumed(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=2)
    async with rmq.push("billing", topic) as billing:
        # A classic reset needs an offset of each queue.
        await topic.send_many(range(4))
        await billing.caught_up()
    await topic.send_many(range(4))
    async with rmq.push(billing.name, topic, exact=True) as again:
        reset = await again.reset("end", mode="server")
        await reset.redelivered()
        assert set((await again.lag()).values()) == {0}


async def test_a_reset_that_no_broker_accepts_says_why(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send(b"x")
    billing = rmq.push("billing", topic)
    with pytest.raises(
        NotSeenError, match=r"a reset of group .* is accepted; seen last: CODE: 1 .*not exist"
    ):
        await billing.reset("begin", mode="classic", timeout=0.2)


@pytest.mark.parametrize("to", ["beginning", 1.5, None, True])
async def test_other_targets_are_refused(rmq: Rmq, to: object) -> None:
    topic = await rmq.topic("orders")
    async with rmq.push("billing", topic) as billing:
        with pytest.raises(KitError, match='a reset goes to "begin", "end", a mark'):
            await billing.reset(to)  # type: ignore[arg-type]


async def test_messages_that_did_not_come_again_are_named(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send_many(range(3))
    async with rmq.push("billing", topic) as billing:
        await billing.caught_up()
        reset = await billing.reset("begin", mode="server")
        billing.crash()
        with pytest.raises(NotSeenError, match=r"of 3 did not come again: .*broker-a/0 @2"):
            await reset.redelivered(timeout=0.2)


async def test_a_delayed_message_is_redelivered(rmq: Rmq) -> None:
    """Its place in the topic is known from its delivery."""
    topic = await rmq.topic("orders", queues=1)
    sent = await topic.send(b"later", delay_level=1)
    async with rmq.push("billing", topic) as billing:
        await billing.received_count(1)
        await billing.caught_up()
        reset = await billing.reset("begin", mode="server")
        assert await reset.redelivered() == [sent]


async def test_a_message_of_the_application_is_redelivered_though_its_retry_has_another_place(
    rmq: Rmq,
) -> None:
    topic = await rmq.topic("orders", queues=1)
    calls = 0

    def listener(messages: list[MessageExt]) -> ConsumeConcurrentlyStatus:
        nonlocal calls
        calls += 1
        if calls == 4:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with rmq.producer() as producer, rmq.push("billing", topic, listener) as billing:
        for body in (b"x", b"y"):
            await producer.send(Message(topic.name, body))
        await billing.received_count(2)
        await billing.caught_up()
        reset = await billing.reset("begin", mode="server")
        assert [message.body for message in await reset.redelivered()] == [b"x", b"y"]
        assert reset.delivered == await topic.read()


async def test_an_orderly_group_that_failed_catches_up_when_a_reset_skips_the_message(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send(b"bad")

    def listener(messages: list[MessageExt]) -> None:
        raise ValueError("bad order")

    async with rmq.orderly("billing", topic, listener) as billing:
        await billing.received_count(1)
        with pytest.raises(NotSeenError, match=r"lag broker-a/0: 1; failed: .*bad"):
            await billing.caught_up(timeout=0.1)
        reset = await billing.reset("end", mode="fenced")
        await reset.stored()
        await billing.caught_up()
