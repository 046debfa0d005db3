"""Failed messages: retries, dead letters, and a broker that does not take them back.

Specification: docs/spec/broker.md B.13, docs/spec/client.md C.6, C.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    Message,
    MessageExt,
    PushConsumer,
    ReconsumeLater,
)
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection, Reply
from tests.support.choice import first_of
from tests.support.clients import OK
from tests.support.fixtures import played
from tests.support.stage import SimStage

LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER
RELEASES = [Profile.V42, Profile.V49, Profile.V53]
SEND_BACK = RequestCode.CONSUMER_SEND_MSG_BACK
SEND = RequestCode.SEND_MESSAGE_V2
# Levels 3 to 18; the last levels are shorter than RocketMQ's, to simulate less.
GROWING = [10, 30, *range(60, 200, 10)]
LEVELS = " ".join(f"{seconds}s" for seconds in (1, 5, *GROWING))


class Failing:
    """An async listener that records its messages and returns given results."""

    def __init__(self, stage: SimStage, *answers: Any, otherwise: Any = OK) -> None:
        self._world = stage.world
        self._answers = list(answers)
        self._otherwise = otherwise
        self.calls: list[tuple[float, list[bytes], list[int]]] = []
        self.messages: list[MessageExt] = []

    async def __call__(self, messages: Sequence[MessageExt]) -> Any:
        self.messages.extend(messages)
        times = [message.reconsume_times for message in messages]
        self.calls.append((self._world.now, [message.body for message in messages], times))
        return self._answers.pop(0) if self._answers else self._otherwise

    @property
    def gaps(self) -> list[int]:
        """Seconds, rounded, between the calls."""
        moments = [when for when, _, _ in self.calls]
        return [round(after - before) for before, after in pairwise(moments)]

    @property
    def times(self) -> list[int]:
        return [times for _, _, counts in self.calls for times in counts]


def stored_in(stage: SimStage, topic: str) -> list[MessageExt]:
    result = stage.brokers["broker-a"].context.store.get_message(topic, 0, 0, 32, None)
    return decode_records(result.body)


def remove_handlers(stage: SimStage, *codes: RequestCode) -> None:
    """Make the broker refuse these requests as unknown."""
    for code in codes:
        stage.brokers["broker-a"]._handlers.pop(code)


async def consume(stage: SimStage, listener: Any, messages: int = 1, **options: Any) -> None:
    """Send messages to a listener once it knows its group's retry topic, which takes up to 30 s."""
    await stage.create_topic(queues=1)
    await stage.consume(listener, **options)
    await stage.world.sleep(45)
    await stage.fill(messages)


@played(store={"message_delay_level": LEVELS})
async def test_a_message_that_always_fails_is_retried_16_times_and_becomes_a_dead_letter(
    stage: SimStage,
) -> None:
    """Each retry waits for the next delay level, from 3 to 18."""
    listener = Failing(stage, otherwise=LATER)
    await consume(stage, listener)
    await stage.world.sleep(sum(GROWING) + 60)
    assert listener.gaps == GROWING
    assert listener.times == list(range(17))
    assert {message.topic for message in listener.messages} == {"T"}
    (dead,) = stored_in(stage, "%DLQ%G")
    assert (dead.body, dead.reconsume_times, dead.properties["RETRY_TOPIC"]) == (b"0", 17, "T")
    assert dead.properties["ORIGIN_MESSAGE_ID"] == listener.messages[0].offset_message_id
    assert stage.stored() == {0: 1}
    assert stage.stored("%RETRY%G") == {0: 16}


@pytest.mark.parametrize("hours", [-2, 2])
@played(store={"message_delay_level": LEVELS})
async def test_retries_last_their_length_when_a_clock_is_set(stage: SimStage, hours: int) -> None:
    """A listener that always fails does not use up its retries at once."""
    listener = Failing(stage, otherwise=LATER)
    await consume(stage, listener, max_reconsume_times=5)
    await stage.world.sleep(3)
    stage.world.wall_ahead_ms += hours * 3_600_000
    await stage.world.sleep(sum(GROWING))
    assert listener.gaps == GROWING[:5]
    assert len(stored_in(stage, "%DLQ%G")) == 1


@pytest.mark.parametrize("profile", RELEASES)
@pytest.mark.parametrize("limit", [0, 2])
@played()
async def test_the_consumer_may_set_the_limit(stage: SimStage, profile: Profile, limit: int) -> None:
    listener = Failing(stage, otherwise=LATER)
    await consume(stage, listener, max_reconsume_times=limit)
    await stage.world.sleep(150)
    assert listener.gaps == GROWING[:limit]
    assert [dead.reconsume_times for dead in stored_in(stage, "%DLQ%G")] == [limit + 1]


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_a_listener_chooses_the_delay(stage: SimStage, profile: Profile) -> None:
    answers = [ReconsumeLater(delay_level=level) for level in (1, 4, 2, -1)]
    listener = Failing(stage, *answers)
    await consume(stage, listener)
    await stage.world.sleep(120)
    assert listener.gaps == [1, 30, 5]
    assert len(stored_in(stage, "%DLQ%G")) == 1


@pytest.mark.parametrize(("consumed", "again"), [(-1, 4), (0, 4), (1, 3), (3, 1), (4, 0), (99, 0)])
@played()
async def test_a_listener_says_how_many_of_a_batch_succeeded(
    stage: SimStage, consumed: int, again: int
) -> None:
    listener = Failing(stage, ReconsumeLater(consumed=consumed))
    await consume(stage, listener, 4, consume_message_batch_max_size=32)
    await stage.world.sleep(4)
    await stage.world.sleep(20)
    assert listener.calls[0][1] == [b"0", b"1", b"2", b"3"]
    retried = [body for _, bodies, _ in listener.calls[1:] for body in bodies]
    assert retried == [b"0", b"1", b"2", b"3"][4 - again :]
    assert stage.stored() == {0: 4}


@pytest.mark.parametrize("is_async", [True, False])
@played()
async def test_plain_and_async_listeners_may_return_a_delay(stage: SimStage, is_async: bool) -> None:
    seen: list[int] = []

    def plain(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | ReconsumeLater:
        seen.append(messages[0].reconsume_times)
        return OK if len(seen) > 1 else ReconsumeLater(delay_level=1)

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | ReconsumeLater:
        return plain(messages)

    await consume(stage, listen if is_async else plain)
    await stage.world.sleep(5)
    assert seen == [0, 1]


@pytest.mark.parametrize("profile", RELEASES)
@played()
async def test_a_message_that_36_refuses_is_sent_to_the_retry_topic(
    stage: SimStage, profile: Profile
) -> None:
    """The copy has one retry more, a growing delay, and the same limit."""
    listener = Failing(stage, otherwise=LATER)
    await consume(stage, listener, max_reconsume_times=2, expression="A")
    producer = await stage.producer()
    await producer.send(Message("T", b"x" * 10_000, tags="A", keys="k"))
    remove_handlers(stage, SEND_BACK)
    # Up to 4.9.x the dead letter is delayed too.
    await stage.world.sleep(180)
    # The copy already counts one more retry, which 5.x allows for.
    retries = 2 if profile is Profile.V53 else 1
    assert listener.gaps == GROWING[:retries]
    first, last = listener.messages[0], listener.messages[-1]
    assert (last.body, last.tags, last.keys, last.topic) == (b"x" * 10_000, "A", "k", "T")
    assert last.msg_id == first.msg_id
    assert last.properties["ORIGIN_MESSAGE_ID"] == first.msg_id
    assert [dead.reconsume_times for dead in stored_in(stage, "%DLQ%G")] == [retries + 1]


@played()
async def test_a_message_that_cannot_be_sent_back_is_consumed_again_by_the_same_consumer(
    stage: SimStage,
) -> None:
    """After 5 s, as one batch; until then the offset does not pass the message."""
    remove_handlers(stage, SEND_BACK, SEND)
    listener = Failing(stage, LATER, ReconsumeLater(consumed=1))
    await consume(stage, listener, 4, consume_message_batch_max_size=32)
    await stage.world.sleep(30)
    assert [bodies for _, bodies, _ in listener.calls] == [
        [b"0", b"1", b"2", b"3"],
        [b"0", b"1", b"2", b"3"],
        [b"1", b"2", b"3"],
    ]
    assert [times for _, _, times in listener.calls] == [[0] * 4, [1] * 4, [2] * 3]
    assert listener.gaps == [5, 5]
    assert stage.stored() == {0: 4}


@pytest.mark.parametrize("answer", [None, RemotingCommand(ResponseCode.SUCCESS, ext_fields={"a": "b"})])
@played()
async def test_a_copy_that_may_be_stored_is_not_sent_again(
    stage: SimStage, answer: RemotingCommand | None
) -> None:
    """After a time-out, the consumer sent the copy three times."""
    listener = Failing(stage, LATER)
    await consume(stage, listener, messages=0)
    remove_handlers(stage, SEND_BACK)
    copies: list[RemotingCommand] = []
    broker = stage.brokers["broker-a"]
    store_it = broker._handlers[SEND]

    def send(connection: Connection, request: RemotingCommand) -> Reply:
        if not str(request.ext["b"]).startswith("%RETRY%"):
            return store_it(connection, request)
        copies.append(request)
        return answer

    broker._handlers[SEND] = send
    await stage.fill(1)
    await stage.world.sleep(4)
    assert len(copies) == 1


@played()
async def test_a_broadcasting_consumer_drops_failed_messages(stage: SimStage, tmp_path: Path) -> None:
    listener = Failing(stage, ReconsumeLater(consumed=2))
    await consume(
        stage,
        listener,
        4,
        message_model=MessageModel.BROADCASTING,
        consume_message_batch_max_size=32,
        offset_root=tmp_path / "offsets",
    )
    await stage.world.sleep(60)
    assert len(listener.calls) == 1


# Listeners that do not return.


@pytest.mark.parametrize("profile", first_of(RELEASES))
@played()
async def test_a_message_stuck_in_its_listener_is_sent_back(stage: SimStage, profile: Profile) -> None:
    """The check comes every 15 minutes: at 15 the message has run for less, at 30 for longer.

    Its queue goes on. When the listener fails later, only 5.x does not send the message back again.
    """
    calls: list[tuple[int, bytes, int]] = []

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        (message,) = messages
        calls.append((int(stage.world.now), message.body, message.reconsume_times))
        if (message.body, message.reconsume_times) == (b"0", 0):
            await stage.world.sleep(2_000)
            return LATER
        return OK

    started = stage.world.now
    await consume(stage, listen, 2)
    await stage.world.sleep(1_805)
    assert [(body, times) for _, body, times in calls] == [(b"0", 0), (b"1", 0), (b"0", 1)]
    assert 1_809 <= calls[-1][0] - started <= 1_830
    await stage.fill(1, first=2)
    await stage.world.sleep(20)
    assert stage.stored() == {0: 3}
    await stage.world.sleep(200)
    copies = [times for _, body, times in calls if body == b"0"]
    assert copies == ([0, 1] if profile is Profile.V53 else [0, 1, 1])


@played()
async def test_at_most_16_messages_of_a_queue_are_sent_back_at_once(stage: SimStage) -> None:
    sent_back: list[int] = []

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        if messages[0].reconsume_times:
            sent_back.append(messages[0].queue_offset)
        else:
            await stage.world.sleep(10_000)
        return OK

    await consume(stage, listen, 20, consume_thread_max=64, consume_timeout=1)
    await stage.world.sleep(80)
    assert sent_back == []
    await stage.until(lambda: len(sent_back) == 16)
    assert 130 <= stage.world.now <= 140
    await stage.world.sleep(40)
    assert len(sent_back) == 16
    await stage.until(lambda: len(sent_back) == 20)


@played()
async def test_messages_that_wait_for_a_listener_are_not_expired(stage: SimStage) -> None:
    calls: list[int] = []

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        calls.append(messages[0].reconsume_times)
        await stage.world.sleep(50)
        return OK

    await consume(stage, listen, 10, consume_thread_max=1, consume_timeout=1)
    await stage.world.sleep(600)
    assert calls == [0] * 10


@played()
async def test_a_stuck_message_that_cannot_be_sent_back_stays(stage: SimStage) -> None:
    remove_handlers(stage, SEND_BACK, SEND)
    listener_calls: list[int] = []

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        listener_calls.append(messages[0].reconsume_times)
        await stage.world.sleep(300)
        return OK

    await consume(stage, listen, consume_timeout=1)
    await stage.world.sleep(250)
    assert stage.stored() == {0: 0}
    await stage.world.sleep(100)
    assert (listener_calls, stage.stored()) == ([0], {0: 1})


@pytest.mark.parametrize("minutes", [0, -1, 1_441, "15"])
def test_consume_timeout_has_bounds(minutes: Any) -> None:
    with pytest.raises(ClientError, match="consume_timeout"):
        PushConsumer("G", "127.0.0.1:9876", consume_timeout=minutes)
