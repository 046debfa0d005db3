"""TransactionProducer with real servers under virtual time: listeners, checks, resets.

Specification: docs/spec/broker.md B.14.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rewindmq import (
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    TransactionProducer,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.message import CheckTransactionStateRequestHeader
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.inbox import Inbox
from tests.support.fixtures import RunScenario, played
from tests.support.stage import SimStage

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE
UNKNOW = LocalTransactionState.UNKNOW
_STEP = 0.5
with_checks = pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
every_profile = pytest.mark.parametrize("profile", [Profile.V42, Profile.V49, Profile.V53])


class Async:
    """An async listener that returns given states and records its calls."""

    def __init__(self, state: Any, checked: Any = UNKNOW) -> None:
        self.state = state
        self.checked = checked
        self.executed: list[tuple[bytes, Any]] = []
        self.checks: list[MessageExt] = []

    async def execute_local_transaction(self, message: Message, arg: Any) -> Any:
        return self._execute(message, arg)

    async def check_local_transaction(self, message: MessageExt) -> Any:
        return self._check(message)

    def _execute(self, message: Message, arg: Any) -> Any:
        self.executed.append((message.body, arg))
        return _say(self.state)

    def _check(self, message: MessageExt) -> Any:
        self.checks.append(message)
        return _say(self.checked)


class Plain(Async):
    """The same listener with plain functions, which run on worker threads."""

    def execute_local_transaction(self, message: Message, arg: Any) -> Any:
        return self._execute(message, arg)

    def check_local_transaction(self, message: MessageExt) -> Any:
        return self._check(message)


class Abort(BaseException):
    """Not an Exception, like gevent's time-outs and pytest's outcomes."""


class Wrapped(Async):
    """Plain functions that return awaitables, as decorators and callable objects do."""

    def execute_local_transaction(self, message: Message, arg: Any) -> Any:
        return super().execute_local_transaction(message, arg)

    def check_local_transaction(self, message: MessageExt) -> Any:
        return super().check_local_transaction(message)


def _say(answer: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer


async def transaction_producer(
    stage: SimStage, listener: Any, *, name: str = "p1", **options: Any
) -> TransactionProducer:
    producer = TransactionProducer(
        "TP",
        stage.namesrv,
        listener=listener,
        runtime=stage.new_runtime(),
        profile=stage.profile,
        instance_name=name,
        **options,
    )
    await stage.enter(producer)
    return producer


async def inbox_of(stage: SimStage) -> Inbox:
    await stage.create_topic()
    inbox = Inbox(stage.world)
    await stage.consume(inbox)
    return inbox


async def at(stage: SimStage, second: float) -> None:
    await stage.world.sleep(second - stage.world.now)


@every_profile
@pytest.mark.parametrize(
    ("kind", "state"), [(Async, COMMIT), (Plain, COMMIT), (Plain, ROLLBACK), (Wrapped, COMMIT)]
)
@played()
async def test_the_local_transaction_decides_whether_a_message_is_delivered(
    stage: SimStage, profile: Profile, kind: Callable[..., Any], state: LocalTransactionState
) -> None:
    inbox = await inbox_of(stage)
    listener = kind(state)
    producer = await transaction_producer(stage, listener)
    result = await producer.send_message_in_transaction(Message("T", b"1", "A"), "order 1")
    assert result.local_transaction_state is state
    assert result.transaction_id == result.send_result.msg_id
    assert listener.executed == [(b"1", "order 1")]
    await at(stage, 10.0)
    assert inbox.bodies == ([b"1"] if state is COMMIT else [])
    for message in inbox.messages:
        assert (message.msg_id, message.tags) == (result.transaction_id, "A")


@pytest.mark.parametrize(
    ("profile", "kind", "first"),
    [
        (Profile.V49, Async, UNKNOW),
        (Profile.V53, Plain, UNKNOW),
        (Profile.V49, Plain, None),
        (Profile.V49, Async, "COMMIT"),
        (Profile.V53, Async, RuntimeError("the database is gone")),
        (Profile.V49, Plain, RuntimeError("the database is gone")),
        (Profile.V49, Async, asyncio.CancelledError()),
        (Profile.V49, Plain, Abort()),
        (Profile.V49, Wrapped, UNKNOW),
    ],
)
@played()
async def test_an_unknown_state_is_checked_later(
    stage: SimStage, profile: Profile, kind: Callable[..., Any], first: Any
) -> None:
    inbox = await inbox_of(stage)
    listener = kind(first, checked=ValueError("not yet"))
    producer = await transaction_producer(stage, listener)
    message = Message("T", b"1", delay_level=3, properties={"a": "b"})
    result = await producer.send_message_in_transaction(message)
    assert result.local_transaction_state is UNKNOW
    await stage.until(lambda: len(listener.checks) == 2, 200)
    assert inbox.bodies == []
    listener.checked = COMMIT
    await stage.until(lambda: bool(inbox.messages), 100)
    asked = listener.checks[-1]
    assert (asked.topic, asked.body, asked.msg_id) == ("T", b"1", result.transaction_id)
    assert (asked.properties["a"], asked.properties.get("DELAY")) == ("b", None)
    await at(stage, stage.world.now + 200)
    assert inbox.bodies == [b"1"]
    assert len(listener.checks) == 3


@with_checks
@played()
async def test_another_producer_of_the_group_answers_for_a_dead_one(
    stage: SimStage, profile: Profile
) -> None:
    """The first producer dies between the half message and its end."""
    inbox = await inbox_of(stage)
    listener = Async(UNKNOW)
    first = await transaction_producer(stage, listener)
    await first.send_message_in_transaction(Message("T", b"1"))
    await first.instance.remoting.close()
    other = Plain(UNKNOW, checked=COMMIT)
    await transaction_producer(stage, other, name="p2")
    await stage.until(lambda: bool(inbox.messages), 200)
    assert inbox.bodies == [b"1"]
    assert (len(other.checks), listener.checks) == (1, [])


@with_checks
@played()
async def test_a_restarted_broker_checks_its_half_messages(stage: SimStage, profile: Profile) -> None:
    inbox = await inbox_of(stage)
    listener = Async(UNKNOW, checked=COMMIT)
    producer = await transaction_producer(stage, listener)
    for number in range(5):
        await producer.send_message_in_transaction(Message("T", b"%d" % number))
    await stage.restart_broker()
    await stage.until(lambda: len(inbox.messages) == 5, 200)
    await at(stage, stage.world.now + 200)
    assert sorted(inbox.bodies) == [b"0", b"1", b"2", b"3", b"4"]
    assert len(listener.checks) == 5


@pytest.mark.parametrize(
    ("profile", "mode"),
    [
        (Profile.V49, ResetMode.CLASSIC),
        (Profile.V53, ResetMode.SERVER),
        (Profile.EPOCH, ResetMode.FENCED),
    ],
)
def test_a_rewind_redelivers_committed_messages_and_nothing_else(
    play: RunScenario, profile: Profile, mode: ResetMode
) -> None:
    async def scene(stage: SimStage) -> None:
        inbox = await inbox_of(stage)
        listener = Async(COMMIT)
        producer = await transaction_producer(stage, listener)
        for number, state in enumerate((COMMIT, ROLLBACK, UNKNOW, COMMIT)):
            listener.state = state
            await producer.send_message_in_transaction(Message("T", b"%d" % number))
        await stage.until(lambda: len(inbox.messages) == 2)
        await at(stage, 15.0)
        inbox.clear()
        admin = await stage.admin()
        await admin.resets.reset("T", "G", 0)
        await stage.until(lambda: len(inbox.messages) == 2, 40)
        await at(stage, stage.world.now + 20)
        assert sorted(inbox.bodies) == [b"0", b"3"]

    play(scene, profile=profile, reset_mode=mode)


async def hostile_check(stage: SimStage, producer: Producer, body: bytes | None) -> None:
    """Send CHECK_TRANSACTION_STATE (39) with a given body."""
    channels = stage.brokers["broker-a"].context.clients.producers.channels
    await stage.until(lambda: bool(channels(producer.group)))
    (channel,) = channels(producer.group)
    header = CheckTransactionStateRequestHeader(1, 2)
    channel.connection.send_oneway(RemotingCommand(RequestCode.CHECK_TRANSACTION_STATE, header, body))


def test_an_invalid_check_or_one_at_a_plain_producer_is_harmless(
    play: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(stage: SimStage) -> None:
        await inbox_of(stage)
        producer = await stage.producer()
        result = await producer.send(Message("T", b"1", properties={"PGROUP": "P"}))
        store = stage.brokers["broker-a"].context.store
        record = store.get_message("T", result.message_queue.queue_id, 0, 1, None).body
        for body in (None, b"", b"x" * 100, record[:-1], record):
            await hostile_check(stage, producer, body)
        await at(stage, stage.world.now + 1.0)
        await producer.send(Message("T", b"2"))

    play(scene)
    assert caplog.text.count("has no readable message") == 4
    assert "no transaction producer of group P" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("is_plain", [False, True])
@played()
async def test_a_check_may_shut_its_producer_down(stage: SimStage, is_plain: bool) -> None:
    """The shutdown does not cancel the check that called it, and closes every connection.

    A plain function calls it from its thread.
    """
    await stage.create_topic()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    class Closing(Async):
        async def check_local_transaction(self, message: MessageExt) -> Any:
            await producer.shutdown()
            ended.set()
            return COMMIT

    class PlainClosing(Async):
        def check_local_transaction(self, message: MessageExt) -> Any:
            closing = asyncio.run_coroutine_threadsafe(producer.shutdown(), loop)
            closing.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
            return COMMIT

    producer = await transaction_producer(stage, (PlainClosing if is_plain else Closing)(UNKNOW))
    await producer.send_message_in_transaction(Message("T", b"order"))
    await stage.until(ended.is_set, 200.0)
    assert not producer.is_running
    await stage.until(lambda: not producer.instance.remoting.connections, 1.0)
