"""Groups that pop in simulated tests."""

from __future__ import annotations

import pytest

from rewindmq.testing import ClusterOptions, KitError, NotSeenError, Rmq
from rewindmq.testing.simulation.run import Body, Simulation, SimulationSettings
from tests.testing.simulation.bodies import simulation


def popping(body: Body) -> Simulation:
    return Simulation(body, SimulationSettings(0.3, 0, False, 600.0), ClusterOptions(profile="v53"))


async def renew_and_expire(rmq: Rmq) -> None:
    jobs = await rmq.topic("jobs", queues=2)
    await jobs.send_many([b"one", b"two"])
    workers = rmq.pop("workers", jobs, invisible=20)
    lent = await workers.take(2)
    started_ms = rmq.now_ms()
    await lent[0].change_invisible_time(120)
    await workers.expire(lent[1])
    assert rmq.now_ms() - started_ms < 60_000
    (second,) = await workers.take()
    assert (second.message, second.attempt) == (lent[1].message, 2)
    await second.ack()
    await workers.revived(lent[0], timeout=200)
    assert rmq.now_ms() - started_ms > 110_000
    (first,) = await workers.take()
    await first.ack()
    await workers.acked()


async def pop_in_order(rmq: Rmq) -> None:
    jobs = await rmq.topic("jobs", queues=1)
    await jobs.send_many([b"one", b"two"])
    workers = rmq.pop("workers", jobs, invisible=20, order=True)
    (first,) = await workers.take()
    assert await workers.pop() == []
    with pytest.raises(KitError, match="an orderly POP revives nothing"):
        await workers.revived(first)
    await workers.expire(first)
    again, second = await workers.take(2)
    assert [again.body, second.body] == [b"one", b"two"]
    await again.ack()
    await second.ack()
    await workers.acked()


async def ask_for_too_much(rmq: Rmq) -> None:
    jobs = await rmq.topic("jobs", queues=1)
    await jobs.send(b"one")
    workers = rmq.pop("workers", jobs)
    with pytest.raises(
        NotSeenError, match=r"pops 2 messages; seen last: 1: \[<LentMessage .*'one'>, attempt 1>\]"
    ):
        await workers.take(2, timeout=3)
    with pytest.raises(KitError, match="expire needs the messages"):
        await workers.expire()
    with pytest.raises(KitError, match="invisible must be more than 0 seconds, not 0"):
        rmq.pop("workers", jobs, invisible=0)
    with pytest.raises(KitError, match="the waits of push groups are about queues that consumers own"):
        rmq.push("workers", jobs, request_mode="pop")


async def pop_without_pop(rmq: Rmq) -> None:
    workers = rmq.pop("workers", await rmq.topic("jobs", queues=1))
    with pytest.raises(KitError, match='broker-a has no POP; use a cluster with the option profile="v53"'):
        await workers.take()
    with pytest.raises(KitError, match="broker-a does not tell what is in flight"):
        await workers.acked()


def test_a_renewed_message_comes_later_than_one_that_expires() -> None:
    popping(renew_and_expire).check(range(3))


def test_an_orderly_queue_is_free_again_when_its_message_expires() -> None:
    popping(pop_in_order).check(range(3))


def test_wrong_use_is_a_clear_error() -> None:
    popping(ask_for_too_much).check(range(1))


def test_a_cluster_without_pop_says_what_to_do() -> None:
    simulation(pop_without_pop).check(range(1))
