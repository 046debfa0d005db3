"""``Group``: deliveries of a group, and waits for them."""

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, ReconsumeLater
from rewindmq.testing import KitError, NotSeenError, Outcome, Rmq


async def test_a_group_gets_what_was_sent_before_it_started(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many(range(20))
    async with rmq.push("billing", topic) as billing:
        await billing.caught_up()
        assert sorted(map(repr, billing.received)) == sorted(map(repr, topic.sent))


async def test_caught_up_means_that_offsets_are_stored(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    await topic.send_many(range(20))
    async with rmq.push("billing", topic) as billing:
        await billing.caught_up()
        assert set((await billing.lag()).values()) == {0}
        stored = await billing.offsets()
    assert sum(stored.values()) == 20


async def test_caught_up_waits_for_retries(rmq: Rmq) -> None:
    """A message that failed is in no queue's lag while it waits for its redelivery."""
    topic = await rmq.topic("orders", queues=1)
    failures = 2

    def listener(messages: list[MessageExt]) -> ConsumeConcurrentlyStatus:
        nonlocal failures
        if failures:
            failures -= 1
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    sent = await topic.send(b"x")
    async with rmq.push("billing", topic, listener) as billing:
        await billing.caught_up()
        assert [each.outcome for each in billing.deliveries] == [
            Outcome.FAILED,
            Outcome.FAILED,
            Outcome.SUCCEEDED,
        ]
        assert [each.reconsume_times for each in billing.deliveries] == [0, 1, 2]
        assert billing.received == [sent]


async def test_caught_up_says_what_is_left(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send_many([b"x", b"y"])
    idle = rmq.group("nobody", topic)
    with pytest.raises(
        NotSeenError, match=r"not within 0\.1 s: group nobody catches up; .*lag broker-a/0: 2"
    ):
        await idle.caught_up(timeout=0.1)


@pytest.mark.parametrize("is_orderly", [False, True])
async def test_errors_of_the_listener_are_reported_with_their_traceback(rmq: Rmq, is_orderly: bool) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send(b"x")
    calls = 0

    async def listener(messages: list[MessageExt]) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ValueError("no such customer")

    make = rmq.orderly if is_orderly else rmq.push
    async with make("billing", topic, listener) as billing:
        await billing.caught_up()
        with pytest.raises(NotSeenError, match=r"(?s)failed 1 times.*no such customer.*Traceback"):
            billing.assert_no_errors()


async def test_an_orderly_listener_may_take_the_context(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    await topic.send_many(range(5))
    got: list[int] = []

    def listener(messages: list[MessageExt], context: object) -> None:
        got.extend(int(message.body) for message in messages)

    async with rmq.orderly("billing", topic, listener) as billing:
        await billing.caught_up()
        billing.assert_no_errors()
    assert got == [0, 1, 2, 3, 4]


async def test_a_listener_that_cannot_be_called_is_refused(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    with pytest.raises(KitError, match=r"cannot be called with \(messages\)"):
        rmq.push("billing", topic, lambda: None)


async def test_dead_letters_are_waited_for_and_settle_the_group(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    sent = await topic.send(b"bad")

    async def listener(messages: list[MessageExt]) -> ReconsumeLater:
        return ReconsumeLater(delay_level=-1)

    async with rmq.push("billing", topic, listener) as billing:
        assert await billing.dead_letters() == [sent]
        await billing.caught_up()
        assert [each.outcome for each in billing.deliveries] == [Outcome.DEAD]


async def test_nothing_more_fails_at_the_first_delivery(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    async with rmq.push("billing", topic) as billing:
        await billing.nothing_more(within=2)
        await topic.send(b"surprise")
        with pytest.raises(NotSeenError, match="surprise"):
            await billing.nothing_more(within=1_000)


async def test_a_second_consumer_takes_a_part_of_the_queues(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=4)
    async with rmq.push("billing", topic) as billing:
        second = await billing.add_consumer()
        await billing.ready()
        await topic.send_many(range(40))
        await billing.caught_up()
        clients = {each.client_id for each in billing.deliveries}
    assert second.client_id in clients
    assert len(clients) == 2


async def test_a_crashed_group_gets_again_what_it_had_not_stored(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    sent = await topic.send_many(range(5))
    first = rmq.push("billing", topic)
    await first.start()
    await first.received_count(5)
    first.crash()
    async with rmq.push(first.name, topic, exact=True) as second:
        await second.caught_up()
        # None, if the first consumer's timer had stored the offset before the crash.
        assert second.received == sent[len(sent) - len(second.received) :]


async def test_stored_returns_offsets_that_cover_what_was_consumed(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=2)
    async with rmq.push("billing", topic) as billing:
        await topic.send_many(range(10))
        await billing.received_count(10)
        assert sum((await billing.stored()).values()) == 10


async def test_a_group_is_started_once(rmq: Rmq) -> None:
    topic = await rmq.topic("orders")
    async with rmq.push("billing", topic) as billing:
        with pytest.raises(KitError, match="add_consumer"):
            await billing.start()


async def test_a_delayed_message_arrives_after_its_delay(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    async with rmq.push("billing", topic) as billing:
        sent = await topic.send(b"later", delay_level=3)
        await billing.nothing_more(within=5)
        assert await billing.received_count(1) == [sent]


async def test_stored_does_not_wait_for_consumers_that_crashed(wired: Rmq) -> None:
    topic = await wired.topic("orders", queues=1)
    await topic.send(b"x")
    (await wired.on("UPDATE_CONSUMER_OFFSET", topic=topic, times=None).drop()).optional()
    async with wired.push("billing", topic) as billing:
        await wired.eventually(
            lambda: set(billing.consumers[0].offsets_in_memory(topic.name).values()) == {1}
        )
        billing.crash()
        assert set((await billing.stored()).values()) == {0}


@pytest.mark.parametrize("failing", [0, 1])
async def test_a_stop_that_fails_for_one_consumer_stops_the_other(
    rmq: Rmq, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    billing = rmq.push("billing", await rmq.topic("orders"))
    await billing.start(2)
    with monkeypatch.context() as patch:
        patch.setattr(billing.consumers[failing], "shutdown", fail)
        with pytest.raises(ZeroDivisionError):
            await billing.stop()
    assert [consumer.is_running for consumer in billing.consumers] == [failing == 0, failing == 1]
    await billing.stop()
    assert not billing.is_running


async def test_a_group_that_has_stopped_cannot_start_again(rmq: Rmq) -> None:
    billing = rmq.push("billing", await rmq.topic("orders"))
    async with billing:
        pass
    with pytest.raises(KitError, match="was started before: make a new group, or use add_consumer"):
        await billing.start()


async def test_a_group_of_a_missing_topic_fails_at_once(rmq: Rmq) -> None:
    with pytest.raises(
        KitError, match=r"subscribes to the topic 'no-such-topic', which does not exist: create"
    ):
        await rmq.push("billing", "no-such-topic").start()
