"""Producers send timer messages and recall them (docs/timers.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rewindmq.client.produce.producer import Producer
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.recall_handle import RecallHandle
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.timer.box import stored
from tests.support.fixtures import played
from tests.support.stage import SimStage

V53 = Profile.V53


def producer_of(stage: SimStage) -> Producer:
    return Producer("P", stage.namesrv, runtime=stage.world.runtime("producer"), profile="v53")


@played(profile=V53, recall_message_enable=True)
async def test_a_producer_recalls_one_of_its_messages(stage: SimStage) -> None:
    async with producer_of(stage) as producer:
        results = [
            await producer.send(message)
            for message in (
                Message("T", b"a", delay_time_sec=5),
                Message("T", b"b", delay_time_ms=5_000),
                Message("T", b"c", deliver_time_ms=stage.runtime.clock.now_ms() + 5_000),
                Message("T", b"d"),
            )
        ]
        assert [result.recall_handle is None for result in results] == [False, False, False, True]
        handle = str(results[1].recall_handle)
        assert await producer.recall("T", handle) == results[1].msg_id
        await stage.runtime.timers.sleep(7)
        bodies = [message.body for queue in range(4) for message in stored(stage.broker, "T", queue)]
        assert sorted(bodies) == [b"a", b"c", b"d"]
        with pytest.raises(ResponseError, match="recall failed, timestamp invalid"):
            await producer.recall("T", handle)


@played(profile=V53)
async def test_what_a_producer_refuses_to_recall(stage: SimStage) -> None:
    async with producer_of(stage) as producer:
        result = await producer.send(Message("T", b"a", delay_time_sec=5))
        with pytest.raises(ResponseError, match="recall failed, operation is forbidden"):
            await producer.recall("T", str(result.recall_handle))
        with pytest.raises(ClientError, match="pass the recall_handle of a SendResult"):
            await producer.recall("T", "garbage")
        elsewhere = RecallHandle("T", "broker-x", str(EPOCH_MS + 60_000), "A").encode()
        with pytest.raises(ClientError, match="broker-x"):
            await producer.recall("T", elsewhere)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Message("T", b"a", delay_time_ms=1, deliver_time_ms=1), "delay_time_ms and deliver_time_ms"),
        (lambda: Message("T", b"a", delay_level=3, delay_time_sec=1), "delay_level does not go together"),
        (lambda: Message("T", b"a", delay_time_sec=1.5), "delay_time_sec must be int, not float"),  # type: ignore[arg-type]
        (lambda: Message("T", b"a", delay_time_sec=-1), "delay_time_sec must be a number from 0"),
        (lambda: Message("T", b"a", deliver_time_ms=1 << 63), "deliver_time_ms must be a number from 0"),
    ],
)
def test_wrong_arguments_are_named(make: Callable[[], Message], text: str) -> None:
    with pytest.raises(ClientError, match=text):
        make()


@played(profile=V53)
async def test_batches_cannot_wait(stage: SimStage) -> None:
    message = Message("T", b"a", delay_time_sec=5)
    async with producer_of(stage) as producer:
        with pytest.raises(ClientError, match="a batch cannot have a delivery time"):
            await producer.send_batch([message, message])
