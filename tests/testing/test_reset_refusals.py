"""``Group.reset`` ends at the first error that a repetition cannot change, and checks its target."""

import pytest

from rewindmq import ClientError, MessageQueue, ResponseError
from rewindmq.client.admin.reset_result import ResetResult
from rewindmq.testing import KitError, Rmq


async def test_a_permanent_refusal_is_raised_at_once(rmq: Rmq, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = await rmq.topic("orders", queues=1)
    await orders.send(b"x")
    async with rmq.push("billing", orders) as billing:
        await billing.caught_up()
        await (await billing.reset("begin", mode="fenced")).redelivered()
        reset, modes = rmq.admin.resets.reset, list[object]()

        async def counted(topic: str, group: str, target: int, *, mode: str, write: bool) -> ResetResult:
            modes.append(mode)
            return await reset(topic, group, target, mode=mode, write=write)

        monkeypatch.setattr(rmq.admin.resets, "reset", counted)
        for mode in ("server", "classic"):
            with pytest.raises(ResponseError, match="was reset in fenced mode"):
                await billing.reset("begin", mode=mode)
        assert modes == ["server", "classic"]


async def test_a_reset_that_a_broker_made_in_another_mode_is_not_repeated(
    rmq: Rmq, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    async def other_mode(*arguments: object, **options: object) -> None:
        nonlocal calls
        calls += 1
        raise ClientError("broker-a was asked to reset in mode fenced, but its response names mode classic")

    orders = await rmq.topic("orders", queues=1)
    monkeypatch.setattr(rmq.admin.resets, "reset", other_mode)
    with pytest.raises(ClientError, match="names mode classic"):
        await rmq.push("billing", orders).reset("begin")
    assert calls == 1


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (None, "names no queue"),
        (("other", "broker-a", 0), "topic other"),
        (("", "broker-a", 7), "no queue broker-a/7; queues: broker-a/0"),
        (("", "broker-z", 0), "no queue broker-z/0"),
    ],
)
async def test_offsets_of_queues_that_the_topic_does_not_have_are_refused(
    rmq: Rmq, queue: tuple[str, str, int] | None, text: str
) -> None:
    orders = await rmq.topic("orders", queues=1)
    targets = {}
    if queue is not None:
        topic, broker, number = queue
        targets = {MessageQueue(topic or orders.name, broker, number): 0}
    with pytest.raises(KitError, match=text):
        await rmq.push("billing", orders).reset(targets)
