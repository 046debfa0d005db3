"""``consumer.errors``: what listeners raise, or return by mistake."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from rewindmq import ClientError, MessageExt, PushConsumer
from rewindmq.client.push.listener_errors import KEPT_ERRORS, KEPT_TRACEBACK_CHARACTERS
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.sim import World
from tests.client.scripted_broker import ScriptedBroker
from tests.client.scripted_stage import consumer_of, play_scripted
from tests.support.virtual import until

both_kinds = pytest.mark.parametrize("is_orderly", [False, True], ids=["concurrent", "orderly"])


def register(consumer: PushConsumer, listener: Any, *, is_orderly: bool) -> None:
    if is_orderly:
        consumer.register_orderly_listener(listener)
    else:
        consumer.register_message_listener(listener)


def play_with(listener: Any, seen: Callable[[PushConsumer], bool], *, is_orderly: bool) -> PushConsumer:
    """Pass three messages of one queue to a listener, until ``seen`` is true."""
    consumers = []

    async def scene(world: World, broker: ScriptedBroker, runtime: Runtime) -> None:
        broker.stored = {0: 0}
        broker.queue_messages = {0: [b"a", b"b", b"c"]}
        consumer = consumer_of(broker, runtime, suspend_current_queue_time_millis=10)
        register(consumer, listener, is_orderly=is_orderly)
        assert consumer.errors.count == 0
        async with consumer:
            await until(world, lambda: seen(consumer), 400.0)
        consumers.append(consumer)

    play_scripted(scene)
    return consumers[0]


@both_kinds
@pytest.mark.parametrize("is_async", [True, False])
def test_an_exception_of_a_listener_is_kept_with_its_place(is_async: bool, is_orderly: bool) -> None:
    def fail(messages: Sequence[MessageExt], *_: object) -> None:
        raise ZeroDivisionError("no such order")

    async def fail_async(messages: Sequence[MessageExt], *_: object) -> None:
        fail(messages)

    consumer = play_with(
        fail_async if is_async else fail, lambda consumer: bool(consumer.errors), is_orderly=is_orderly
    )
    first = consumer.errors[0]
    assert (first.queue.topic, first.queue.queue_id, first.offset, first.count) == ("T", 0, 0, 1)
    assert first.error == "ZeroDivisionError: no such order"
    assert first.traceback.startswith("Traceback")
    assert "in fail" in first.traceback
    assert first.at > 0


@both_kinds
def test_a_result_that_is_not_a_status_is_kept_too(is_orderly: bool) -> None:
    async def answer(*_: object) -> bool:
        return True

    consumer = play_with(answer, lambda consumer: bool(consumer.errors), is_orderly=is_orderly)
    kind = "ConsumeOrderlyStatus" if is_orderly else "ConsumeConcurrentlyStatus"
    assert consumer.errors[0].error == f"the listener returned bool, not {kind}"
    assert consumer.errors[0].traceback == ""


@both_kinds
def test_none_and_a_refusal_are_not_errors(is_orderly: bool) -> None:
    answers = [None, "SUSPEND_CURRENT_QUEUE_A_MOMENT" if is_orderly else "RECONSUME_LATER"]
    given: list[str | None] = []

    async def refuse(*_: object) -> Any:
        given.append(answers[len(given) % 2])
        return given[-1]

    consumer = play_with(refuse, lambda _: len(given) >= 4, is_orderly=is_orderly)
    assert list(consumer.errors) == []


def test_only_the_newest_are_kept_and_all_are_counted() -> None:
    raised: list[str] = []

    async def fail(*_: object) -> None:
        raised.append(f"{len(raised)}" + "x" * 2 * KEPT_TRACEBACK_CHARACTERS)
        raise ValueError(raised[-1])

    wanted = KEPT_ERRORS + 5
    consumer = play_with(fail, lambda consumer: consumer.errors.count >= wanted, is_orderly=True)
    assert len(consumer.errors) == KEPT_ERRORS
    assert consumer.errors.count == len(raised) >= wanted
    assert consumer.errors[-1].error.startswith(f"ValueError: {len(raised) - 1}x")
    for error in consumer.errors:
        assert len(error.error) + len(error.traceback) <= 2 * KEPT_TRACEBACK_CHARACTERS


def test_an_error_without_a_text_is_kept_all_the_same() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    async def fail(*_: object) -> None:
        raise MuteError

    consumer = play_with(fail, lambda consumer: bool(consumer.errors), is_orderly=False)
    assert "MuteError" in consumer.errors[0].error


def no_argument() -> None: ...


def one(messages: Any) -> None: ...


def two(messages: Any, context: Any) -> None: ...


def three(messages: Any, context: Any, more: Any) -> None: ...


async def keyword(messages: Any, *, context: Any) -> None: ...


class Listener:
    def consume_message(self, messages: Any) -> None: ...


class Callee:
    async def __call__(self, messages: Any) -> None: ...


@pytest.mark.parametrize("listener", [no_argument, two, three, keyword, Listener(), None])
def test_a_listener_that_cannot_be_called_with_messages_is_refused(listener: Any) -> None:
    with pytest.raises(ClientError, match=r"listener"):
        PushConsumer("G", "127.0.0.1:9876").register_message_listener(listener)


@pytest.mark.parametrize("listener", [no_argument, one, three, keyword, Callee(), Listener(), None])
def test_a_listener_that_cannot_be_called_with_messages_and_context_is_refused(listener: Any) -> None:
    with pytest.raises(ClientError, match=r"listener"):
        PushConsumer("G", "127.0.0.1:9876").register_orderly_listener(listener)


def test_the_refusal_says_what_the_listener_is_called_with() -> None:
    with pytest.raises(ClientError) as refusal:
        PushConsumer("G", "127.0.0.1:9876").register_orderly_listener(one)  # type: ignore[arg-type]
    assert str(refusal.value) == "the listener is called as one(messages, context), but takes (messages)"


def test_listeners_whose_parameters_are_not_known_for_certain_are_accepted() -> None:
    @functools.wraps(two)
    def injecting(messages: Any) -> None:
        two(messages, "a context")

    class Lying:
        __signature__ = "nonsense"

        def __call__(self, messages: Any) -> None: ...

    consumer = PushConsumer("G", "127.0.0.1:9876")
    partial: Any = functools.partial(two, context=1)
    concurrent: list[Any] = [one, injecting, partial, Callee(), Mock(), lambda *_: None, Lying(), dict]
    for listener in concurrent:
        consumer.register_message_listener(listener)
    orderly: list[Any] = [two, functools.partial(three, more=1), Mock(), lambda *_: None, max]
    for listener in orderly:
        consumer.register_orderly_listener(listener)
