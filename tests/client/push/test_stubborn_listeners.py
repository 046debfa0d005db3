"""Whatever listeners raise or return, no message gets stuck, and no task is left.

Specification: docs/spec/client.md C.10, C.11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageExt,
    ReconsumeLater,
)
from tests.client.push.orderly_props import SUCCESS
from tests.client.push.orderly_props import consume as consume_orderly
from tests.support.clients import OK
from tests.support.fixtures import played
from tests.support.stage import SimStage


class Abort(BaseException):
    """Not an Exception, like gevent's time-outs and pytest's outcomes."""


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [Abort, StopIteration])
@played()
async def test_whatever_a_listener_raises_its_message_comes_again(
    stage: SimStage, error: type[BaseException], is_async: bool
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(2)
    calls: list[tuple[bytes, int]] = []

    def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        calls.append((messages[0].body, messages[0].reconsume_times))
        if len(calls) == 1:
            raise error
        return OK

    async def listen_async(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        return listen(messages)

    await stage.consume(listen_async if is_async else listen)
    await stage.world.sleep(45)
    assert calls == [(b"0", 0), (b"1", 0), (b"0", 1)]
    assert stage.stored() == {0: 2}


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [Abort, StopIteration])
@played()
async def test_whatever_an_orderly_listener_raises_its_queue_goes_on(
    stage: SimStage, error: type[BaseException], is_async: bool
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    calls: list[int] = []

    def listen(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        calls.append(messages[0].queue_offset)
        if len(calls) == 2:
            raise error
        return SUCCESS

    async def listen_async(
        messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        return listen(messages, context)

    await consume_orderly(stage, listen_async if is_async else listen)
    await stage.until(lambda: stage.stored() == {0: 3})
    assert calls == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("name", "value"), [("auto_commit", None), ("suspend_current_queue_time_millis", None)]
)
@played()
async def test_nonsense_in_an_orderly_context_does_not_stop_the_queue(
    stage: SimStage, name: str, value: Any
) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    calls: list[int] = []

    async def listen(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        calls.append(messages[0].queue_offset)
        if len(calls) == 2:
            setattr(context, name, value)
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return SUCCESS

    await consume_orderly(stage, listen)
    await stage.until(lambda: stage.stored() == {0: 3})
    assert calls == [0, 1, 1, 2]


@played()
async def test_nonsense_in_a_result_does_not_lose_the_batch(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(3)
    calls: list[bytes] = []

    async def listen(messages: Sequence[MessageExt]) -> Any:
        calls.append(messages[0].body)
        return ReconsumeLater(consumed=None) if len(calls) == 1 else OK  # type: ignore[arg-type]

    await stage.consume(listen)
    await stage.until(lambda: stage.stored() == {0: 3})
    assert sorted(calls) == [b"0", b"0", b"1", b"2"]
