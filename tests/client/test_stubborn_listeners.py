"""Whatever listeners raise or answer, no message is stuck and no task is left (behaviour.md C.10, C.11)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewindmq.client import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageExt,
    ReconsumeLater,
)
from tests.client.client_stage import OK, Cluster, play, until
from tests.client.orderly_props import SUCCESS
from tests.client.orderly_props import consume as consume_orderly


class Abort(BaseException):
    """As gevent's time-outs and pytest's verdicts are: no Exception."""


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [Abort, StopIteration])
def test_whatever_a_listener_raises_its_message_comes_again(
    tmp_path: Path, error: type[BaseException], is_async: bool
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(2)
        calls: list[tuple[bytes, int]] = []

        def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            calls.append((messages[0].body, messages[0].reconsume_times))
            if len(calls) == 1:
                raise error
            return OK

        async def listen_async(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            return listen(messages)

        await cluster.consume(listen_async if is_async else listen)
        await asyncio.sleep(45)
        assert calls == [(b"0", 0), (b"1", 0), (b"0", 1)]
        assert cluster.stored() == {0: 2}

    play(scene, tmp_path)


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [Abort, StopIteration])
def test_whatever_an_orderly_listener_raises_its_queue_goes_on(
    tmp_path: Path, error: type[BaseException], is_async: bool
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)
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

        await consume_orderly(cluster, listen_async if is_async else listen)
        await until(lambda: cluster.stored() == {0: 3})
        assert calls == [0, 1, 1, 2]

    play(scene, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"), [("auto_commit", None), ("suspend_current_queue_time_millis", None)]
)
def test_nonsense_in_an_orderly_context_does_not_stop_the_queue(
    tmp_path: Path, name: str, value: Any
) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)
        calls: list[int] = []

        async def listen(
            messages: Sequence[MessageExt], context: ConsumeOrderlyContext
        ) -> ConsumeOrderlyStatus:
            calls.append(messages[0].queue_offset)
            if len(calls) == 2:
                setattr(context, name, value)
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            return SUCCESS

        await consume_orderly(cluster, listen)
        await until(lambda: cluster.stored() == {0: 3})
        assert calls == [0, 1, 1, 2]

    play(scene, tmp_path)


def test_nonsense_in_a_verdict_does_not_lose_the_batch(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        await cluster.create_topic(queues=1)
        await cluster.fill(3)
        calls: list[bytes] = []

        async def listen(messages: Sequence[MessageExt]) -> Any:
            calls.append(messages[0].body)
            return ReconsumeLater(consumed=None) if len(calls) == 1 else OK  # type: ignore[arg-type]

        await cluster.consume(listen)
        await until(lambda: cluster.stored() == {0: 3})
        assert sorted(calls) == [b"0", b"0", b"1", b"2"]

    play(scene, tmp_path)
