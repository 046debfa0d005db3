"""Simulated tests: seeds, replays, the shortened schedule, and the kit's faults under virtual time."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rewindmq import LocalTransactionState, Message, MessageExt
from rewindmq.protocol.errors import RequestTimeoutError, RewindMQError
from rewindmq.testing import KitError, Rmq
from rewindmq.testing.simulation.run import Body, SimulatedRun
from tests.testing.simulation.bodies import assume_an_order_of_topics, send_and_consume, simulation


def kept(run: SimulatedRun, count: int | None = None) -> dict[tuple[str, int], float]:
    return {choice.key: choice.value for choice in run.choices[:count]}


def test_a_correct_test_passes_every_seed() -> None:
    simulation(send_and_consume).check(range(15))


@pytest.fixture(scope="module")
def found() -> AssertionError:
    """The failure of a racy test within 200 seeds."""
    with pytest.raises(AssertionError) as raised:
        simulation(assume_an_order_of_topics).check(range(200))
    return raised.value


def report(failure: AssertionError) -> tuple[int, list[str]]:
    """Return the seed and the lines of a report."""
    lines = failure.__notes__[-1].splitlines()
    return int(lines[0].partition("--rewindmq-seed ")[2]), lines[1:]


def test_a_race_is_found_and_its_schedule_is_shortened(found: AssertionError) -> None:
    seed, (size, *choices) = report(found)
    count = len(simulation(assume_an_order_of_topics).run(seed).choices)
    assert size.startswith(f"a shortened schedule that fails has {len(choices)} of {count} choices")
    assert 1 <= len(choices) < count
    assert any("PULL_MESSAGE (topic customers-sim" in text and "was delayed by" in text for text in choices)


def test_a_seed_fails_alike_when_it_runs_alone(found: AssertionError) -> None:
    seed, lines = report(found)
    with pytest.raises(AssertionError) as alone:
        simulation(assume_an_order_of_topics).check([seed])
    assert report(alone.value) == (seed, lines)
    assert str(alone.value) == str(found)


def test_a_replay_takes_the_choices_of_the_run() -> None:
    times: list[list[float]] = []

    async def body(rmq: Rmq) -> None:
        await send_and_consume(rmq)
        times[-1].append(rmq.admin.runtime.clock.monotonic())

    tested = simulation(body)
    times.append([])
    drawn = tested.run(7)
    times.append([])
    replayed = tested.run(7, kept(drawn))
    assert drawn.choices
    assert replayed.choices == drawn.choices
    assert times[0] == times[1]
    assert tested.run(7, kept(drawn, 1)).choices == drawn.choices[:1]


def test_a_failure_that_no_replay_repeats_has_no_schedule() -> None:
    runs = 0

    async def body(rmq: Rmq) -> None:
        nonlocal runs
        runs += 1
        await send_and_consume(rmq)
        assert runs > 1

    with pytest.raises(AssertionError) as raised:
        simulation(body).check([7])
    assert raised.value.__notes__[-1].splitlines() == [
        "seed 7 fails, 0 seeds passed before; to run it alone: --rewindmq-seed 7",
        "the replay of its schedule passed: the test depends on more than its seed",
    ]


def test_seeds_differ() -> None:
    tested = simulation(send_and_consume)
    assert tested.run(1).choices != tested.run(2).choices


def test_random_numbers_of_the_application_follow_the_seed() -> None:
    drawn: list[float] = []

    async def body(rmq: Rmq) -> None:
        drawn.append(random.random())

    tested = simulation(body)
    state = random.getstate()
    for seed in (1, 2, 1):
        tested.run(seed)
    assert random.getstate() == state
    assert drawn[0] == drawn[2] != drawn[1]


def test_faults_and_resets_work_as_in_a_real_cluster() -> None:
    async def body(rmq: Rmq) -> None:
        orders = await rmq.topic("orders")
        await orders.send_many(range(10))
        async with rmq.down("broker-a"):
            pass
        async with rmq.down("namesrv"):
            pass
        async with rmq.paused("broker-a"):
            with pytest.raises(RequestTimeoutError):
                await rmq.admin.topics.examine_topic_stats(orders.name)
        mark = await rmq.mark()
        await orders.send_many(range(10))
        async with rmq.orderly("billing", orders) as billing:
            await billing.caught_up()
            reset = await billing.reset(to=mark)
            await reset.redelivered()
            assert reset.delivered == orders.since(mark)
            await billing.nothing_more()
            with pytest.raises(KitError, match=r"no server 'broker-x'; servers: namesrv, broker-a, broker-b"):
                await rmq.kill("broker-x")

    simulation(body, brokers=2).check(range(3))


def test_transactions_retries_and_dead_letters_pass_in_virtual_time() -> None:
    class Commits:
        def execute_local_transaction(self, message: Message, argument: object) -> LocalTransactionState:
            return LocalTransactionState.UNKNOW

        def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
            return LocalTransactionState.COMMIT_MESSAGE

    def fail(messages: Sequence[MessageExt]) -> None:
        raise ValueError("no")

    async def body(rmq: Rmq) -> None:
        orders = await rmq.topic("orders")
        async with rmq.transaction_producer(Commits()) as producer:
            await producer.send_message_in_transaction(Message(orders.name, b"one"))
            async with rmq.push("billing", orders, fail, max_reconsume_times=1) as billing:
                letters = await billing.dead_letters(timeout=300)
                assert [letter.body for letter in letters] == [b"one"]

    simulation(body).check(range(2))


@pytest.mark.parametrize("power_failures", [False, True])
def test_a_power_failure_loses_what_the_disk_has_not_synced(power_failures: bool) -> None:
    async def body(rmq: Rmq) -> None:
        orders = await rmq.topic("orders", queues=1)
        await orders.send("one")
        async with rmq.down("broker-a"):
            pass
        assert len(await orders.read()) == (0 if power_failures else 1)

    simulation(body, power_failures=power_failures, latency=0.0).check(range(1))


def test_a_schedule_with_kills_names_the_kill() -> None:
    async def body(rmq: Rmq) -> None:
        orders = await rmq.topic("orders")
        async with rmq.push("billing", orders):
            for number in range(60):
                await orders.send(number)
                await rmq.admin.runtime.timers.sleep(1)

    with pytest.raises(Exception, match="Connection") as raised:
        simulation(body, kills=1).check(range(20))
    choices = raised.value.__notes__[-1].splitlines()[2:]
    assert any("broker-a was killed, and started again after" in choice for choice in choices)


def test_a_server_that_the_test_ended_stays_down_until_the_test_restarts_it() -> None:
    """Also if the schedule killed it before, and would start it again."""

    async def body(rmq: Rmq) -> None:
        orders = await rmq.topic("orders", queues=1)
        async with rmq.push("billing", orders):
            pass
        await rmq.admin.runtime.timers.sleep(1)
        async with rmq.down("broker-a"):
            for _ in range(25):
                await rmq.admin.runtime.timers.sleep(1)
                with pytest.raises(RewindMQError):
                    await orders.read()

    simulation(body, kills=1, latency=0.0).check(range(6))


def kills_of(body: Body) -> list[str]:
    """Return the kills of ten runs."""
    runs = [simulation(body, kills=1, latency=0.0).run(seed) for seed in range(10)]
    assert [run.error for run in runs] == [None] * 10
    return [choice.place for run in runs for choice in run.choices]


def test_options_for_the_applications_clients_begin_no_kills_and_belong_to_one_host() -> None:
    async def body(rmq: Rmq) -> None:
        assert rmq.client_options["runtime"] is rmq.client_options["runtime"]
        await rmq.admin.runtime.timers.sleep(20)

    assert kills_of(body) == []


def test_kills_begin_with_a_handle_to_a_group_of_the_application() -> None:
    async def body(rmq: Rmq) -> None:
        rmq.group("billing", await rmq.topic("orders"))
        await rmq.admin.runtime.timers.sleep(20)

    assert set(kills_of(body)) == {"kill"}
