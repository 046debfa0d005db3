"""A group that pops in a test, and time that passes at once, with real processes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rewindmq import ConsumeConcurrentlyStatus, Message, MessageExt, PushConsumer, testing
from rewindmq.testing import NotSeenError, Rmq

pop_cluster = testing.cluster(profile="v53", brokers=2)
rmq = testing.rmq("pop_cluster")
HOUR = 3_600


async def test_what_is_not_acknowledged_comes_again_at_once(rmq: Rmq) -> None:
    jobs = await rmq.topic("jobs", queues=2)
    sent = await jobs.send_many([b"%d" % number for number in range(8)])
    workers = rmq.pop("workers", jobs, invisible=HOUR)
    lent = await workers.take(8)
    assert sorted(each.body for each in lent) == [message.body for message in sent]
    assert {each.attempt for each in lent} == {1}
    assert await workers.pop() == []
    assert sum((await workers.in_flight()).values()) == 8
    for each in lent[1:]:
        await each.ack()
    with pytest.raises(NotSeenError, match=r"in flight jobs-.*: 1"):
        await workers.acked(timeout=0.1)
    await workers.expire(lent[0])
    (again,) = await workers.take()
    assert (again.message, again.attempt) == (lent[0].message, 2)
    await again.ack()
    await workers.acked()
    assert await workers.in_flight() == {}


async def test_an_application_goes_on_popping_after_a_travel(rmq: Rmq) -> None:
    jobs = await rmq.topic("jobs", queues=2)
    workers = rmq.pop("workers", jobs)
    got: list[bytes] = []

    def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        got.extend(message.body for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    options = {"request_mode": "pop", "consume_from": "first", **rmq.client_options}
    consumer = PushConsumer(workers.name, rmq.namesrv_address, **options)
    consumer.subscribe(jobs.name, "*")
    consumer.register_message_listener(listen)
    await jobs.send(b"one")
    async with consumer:
        await rmq.eventually(lambda: got == [b"one"])
        await rmq.travel(HOUR)
        await jobs.send(b"two")
        await workers.acked()
    assert got == [b"one", b"two"]


async def test_a_timer_passes_at_once(rmq: Rmq) -> None:
    reminders = await rmq.topic("reminders", queues=1)
    await reminders.send(Message(reminders.name, b"in an hour", delay_time_sec=HOUR))
    at_ms = rmq.now_ms() + 30 * 60_000
    sent = await reminders.send(Message(reminders.name, b"at a time", deliver_time_ms=at_ms))
    assert sent.offset == -1
    await rmq.travel(HOUR - 60)
    assert await reminders.read() == []
    await rmq.travel_to(at_ms + 1_000)
    assert rmq.now_ms() >= at_ms + 1_000
    await rmq.travel_to(at_ms)
    workers = rmq.pop("workers", reminders)
    assert {each.body for each in await workers.take(2)} == {b"in an hour", b"at a time"}
