"""Steps that several races share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import Event, Kind, Lab
from rewindmq.race.proxy.pattern import Form, FramePattern
from rewindmq.race.stage.stage import AT_ONCE, TOPIC, ListenerPlan, Stage, StageConsumer, consumer_process

# Protocol seconds: the wait of a classic reset (docs/spec/reset.md D.5, step 4), the period of commits.
RESET_WAIT: Final = 10.0
PERSIST_PERIOD: Final = 5.0
# A stale offset is this many times as large as the queue's end.
STALE: Final = 10
NO_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({})
ONE_THREAD: Final[Mapping[str, Any]] = MappingProxyType({"consume_thread_max": 1})


async def caught_up(
    stage: Stage,
    count: int,
    *,
    name: str = "A",
    queues: int = 1,
    listener: ListenerPlan = AT_ONCE,
    tags: str = "*",
    tag: str = "",
    options: Mapping[str, Any] = NO_OPTIONS,
) -> StageConsumer:
    """Start a consumer and wait until it has consumed ``count`` messages of each queue and committed.

    It sends the last message after the others are consumed. So the pull after that message carries a commit
    offset: the one before the last message.
    """
    for queue in range(queues):
        await stage.send(count - 1, queue=queue, tag=tag)
    consumer = await stage.consumer(name, listener=listener, tags=tags, options=options)
    for queue in range(queues):
        await progress(stage, count - 1, name=name, queue=queue)
        await stage.send(1, queue=queue, tag=tag)
    for queue in range(queues):
        await committed(stage, count - 1, queue=queue)
        await progress(stage, count, name=name, queue=queue)
    return consumer


async def stale_offset(stage: Stage, count: int) -> None:
    """Have the group consume ``count`` messages, then store an offset beyond the queue's end."""
    before = await caught_up(stage, count)
    await before.stop()
    await committed(stage, count)
    reader = await stage.reader("0")
    await reader.commit(STALE * count)
    await committed(stage, STALE * count)
    await reader.stop()


async def progress(stage: Stage, offset: int, *, name: str = "A", queue: int = 0) -> Event:
    """Wait until a consumer's offset in memory is ``offset``."""
    return await stage.until(
        Point.OFFSET_UPDATED, process=consumer_process(name), topic=TOPIC, queue_id=queue, offset=offset
    )


async def committed(stage: Stage, offset: int, *, queue: int = 0) -> Event:
    """Wait until the broker has stored ``offset``."""
    return await stage.until(Point.COMMIT_RECEIVED, topic=TOPIC, queue_id=queue, offset=offset)


async def since_reset(stage: Stage, kind: Kind, *, seconds: float = 60.0, **wanted: Any) -> Event:
    """Wait for the first matching event after the start of the latest reset."""
    started = stage.history.of(Lab.RESET_STARTED)[-1].at
    before = sum(event.at < started for event in stage.history.of(kind, **wanted))
    return await stage.until(kind, seconds=seconds, count=before + 1, **wanted)


async def wait_begun(stage: Stage, *, name: str = "A") -> None:
    """Wait until a consumer is in the wait of a classic reset; return at once in the other modes."""
    if stage.mode is ResetMode.CLASSIC:
        await since_reset(stage, Point.SUSPENDED, process=consumer_process(name))


async def wait_over(stage: Stage, *, name: str = "A") -> None:
    """Wait until a consumer has applied a classic reset; in the other modes wait 10 s."""
    if stage.mode is ResetMode.CLASSIC:
        await since_reset(stage, Point.RESUMED, process=consumer_process(name))
    else:
        await stage.sleep(RESET_WAIT)


async def replay_begun(stage: Stage, *, name: str = "A") -> None:
    """Wait until a consumer takes over queue 0 again after a classic wait; in the other modes wait 10 s."""
    if stage.mode is ResetMode.CLASSIC:
        await since_reset(stage, Point.QUEUE_ADDED, process=consumer_process(name), topic=TOPIC, queue_id=0)
    else:
        await stage.sleep(RESET_WAIT)


async def begun_again(stage: Stage, consumer: StageConsumer, *, queue: int = 0) -> None:
    """Wait until a consumer has dropped the queue it was consuming and started it again.

    Outside classic mode, the consumer would start it again only at its next rebalance, up to 20 s later. So
    this function calls ``resume``, which causes a rebalance.
    """
    place: dict[str, Any] = {"process": consumer_process(consumer.name), "topic": TOPIC, "queue_id": queue}
    if is_restarted_in_place(stage):
        await since_reset(stage, Point.QUEUE_RESTARTED, **place)
        return
    if stage.mode is not ResetMode.CLASSIC:
        target = stage.history.of(Lab.RESET_STARTED)[-1].details["offset"]
        await since_reset(stage, Point.COMMIT_SENT, offset=target, **place)
        await consumer.resume()
    await since_reset(stage, Point.QUEUE_ADDED, **place)


def is_restarted_in_place(stage: Stage) -> bool:
    """True if consumers learn of the reset from their next pull or commit, without wait or offset query."""
    return stage.mode is ResetMode.FENCED and stage.knows_epochs


def pull(offset: int, *, form: Form, response_code: int | None = None) -> FramePattern:
    """Match a pull of queue 0 at this offset, or its response (only with ``response_code``, if given)."""
    fields = {"topic": TOPIC, "queueId": 0, "queueOffset": offset}
    return FramePattern(RequestCode.PULL_MESSAGE, form, response_code, fields)


def query(*, form: Form, skip: int = 0, count: int | None = 1) -> FramePattern:
    """Match QUERY_CONSUMER_OFFSET (14) for queue 0, or its answer."""
    fields = {"topic": TOPIC, "queueId": 0}
    return FramePattern(RequestCode.QUERY_CONSUMER_OFFSET, form, fields=fields, skip=skip, count=count)


def commit(offset: int, *, count: int | None = 1) -> FramePattern:
    """Match UPDATE_CONSUMER_OFFSET (15) with this offset of queue 0."""
    fields = {"topic": TOPIC, "queueId": 0, "commitOffset": offset}
    return FramePattern(RequestCode.UPDATE_CONSUMER_OFFSET, fields=fields, count=count)
