"""``eventually``, ``always`` and ``leads_to``."""

import asyncio

import pytest

from rewindmq.testing import NotSeenError, Rmq


async def test_eventually_passes_as_soon_as_the_check_does(rmq: Rmq) -> None:
    calls: list[int] = []

    def third_time() -> bool:
        calls.append(1)
        return len(calls) == 3

    await rmq.eventually(third_time)
    assert len(calls) == 3


async def test_eventually_accepts_coroutines_and_assertions(rmq: Rmq) -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(done.set)

    async def check() -> bool:
        assert done.is_set(), "not yet"
        return True

    await rmq.eventually(check)


async def test_eventually_fails_with_what_it_saw_last(rmq: Rmq) -> None:
    def nothing() -> list[int]:
        return []

    with pytest.raises(NotSeenError, match=r"nothing \(.*test_waiting\.py.*; seen last: \[\]"):
        await rmq.eventually(nothing, timeout=0.05)

    def empty_assertion() -> None:
        assert not calls, "three calls are missing"

    calls = [1]
    with pytest.raises(NotSeenError, match="seen last: AssertionError: three calls are missing"):
        await rmq.eventually(empty_assertion, timeout=0.05)
    calls.clear()
    with pytest.raises(NotSeenError, match="must return a true value"):
        await rmq.eventually(empty_assertion, timeout=0.05)


async def test_an_error_of_the_check_ends_the_wait(rmq: Rmq) -> None:
    with pytest.raises(ZeroDivisionError):
        await rmq.eventually(lambda: 1 / 0)


async def test_always_fails_when_the_check_ceases_to_hold(rmq: Rmq) -> None:
    values = iter([True, True, False])
    with pytest.raises(NotSeenError, match=r"seen: False"):
        await rmq.always(lambda: next(values), within=1_000)
    await rmq.always(lambda: True, within=0.1)


async def test_leads_to_waits_for_the_cause_and_then_for_the_effect(rmq: Rmq) -> None:
    topic = await rmq.topic("orders", queues=1)
    async with rmq.push("billing", topic) as billing:
        await topic.send(b"x")
        await rmq.leads_to(lambda: billing.received, lambda: True)
        with pytest.raises(NotSeenError, match="leads to"):
            await rmq.leads_to(lambda: True, lambda: False, within=0.1)


async def test_a_check_that_never_returns_fails_with_what_was_seen_before(rmq: Rmq) -> None:
    answers = iter([0])

    async def hang() -> int:
        for answer in answers:
            return answer
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return await never

    text = r"not within 0.05 s: hang \(.*; the check did not return; seen last: 0"
    with pytest.raises(NotSeenError, match=text):
        await rmq.eventually(hang, timeout=0.05)


async def test_the_application_may_raise_a_timeout_error_of_its_own(rmq: Rmq) -> None:
    async def give_up() -> None:
        raise TimeoutError("of the application")

    with pytest.raises(TimeoutError, match="of the application"):
        await rmq.eventually(give_up)
    with pytest.raises(TimeoutError, match="of the application"):
        await rmq.always(give_up)
