"""Steps that several races have in common."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.history import Event, Kind, Lab
from rewindmq.race.proxy.pattern import Form, FramePattern
from rewindmq.race.stage.stage import AT_ONCE, TOPIC, ListenerPlan, Member, Stage, consumer_process

# What a classic reset waits (``behaviour.md`` D.5, step 4), and how often consumers commit.
RESET_WAIT: Final = 10.0
PERSIST_PERIOD: Final = 5.0
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
) -> Member:
    """A member that has consumed ``count`` messages of each queue, of which the broker has heard.

    The last message comes after the others: the pull that follows it carries the offset reached before.
    """
    for queue in range(queues):
        await stage.send(count - 1, queue=queue, tag=tag)
    member = await stage.member(name, listener=listener, tags=tags, options=options)
    for queue in range(queues):
        await progress(stage, count - 1, name=name, queue=queue)
        await stage.send(1, queue=queue, tag=tag)
    for queue in range(queues):
        await committed(stage, count - 1, queue=queue)
        await progress(stage, count, name=name, queue=queue)
    return member


async def progress(stage: Stage, offset: int, *, name: str = "A", queue: int = 0) -> Event:
    """Until a member's offset in memory has come to ``offset``."""
    return await stage.until(
        Point.OFFSET_UPDATED, process=consumer_process(name), topic=TOPIC, queue_id=queue, offset=offset
    )


async def committed(stage: Stage, offset: int, *, queue: int = 0) -> Event:
    """Until the broker has stored ``offset``."""
    return await stage.until(Point.COMMIT_RECEIVED, topic=TOPIC, queue_id=queue, offset=offset)


async def since_reset(stage: Stage, kind: Kind, *, seconds: float = 60.0, **wanted: Any) -> Event:
    """The first such event after the latest reset was started."""
    started = stage.history.of(Lab.RESET_STARTED)[-1].at
    before = sum(event.at < started for event in stage.history.of(kind, **wanted))
    return await stage.until(kind, seconds=seconds, count=before + 1, **wanted)


async def wait_begun(stage: Stage, *, name: str = "A") -> None:
    """Until a member is in the wait of a classic reset; in the other modes nobody waits."""
    if stage.mode is ResetMode.CLASSIC:
        await since_reset(stage, Point.SUSPENDED, process=consumer_process(name))


async def wait_over(stage: Stage, *, name: str = "A", queue: int = 0) -> None:
    """Until a member has applied a classic reset and taken its queue over again.

    In the other modes nobody waits; the same time passes.
    """
    if stage.mode is ResetMode.CLASSIC:
        await since_reset(
            stage, Point.QUEUE_ADDED, process=consumer_process(name), topic=TOPIC, queue_id=queue
        )
    else:
        await stage.sleep(RESET_WAIT)


def pull(*, form: Form, queue: int = 0, **fields: Any) -> FramePattern:
    """A pull of the race's topic, or the answer to it."""
    return FramePattern(RequestCode.PULL_MESSAGE, form, fields={"topic": TOPIC, "queueId": queue, **fields})


def query(*, form: Form, queue: int = 0, skip: int = 0) -> FramePattern:
    """Asking the broker for the stored offset (14), or the answer to it."""
    return FramePattern(
        RequestCode.QUERY_CONSUMER_OFFSET, form, fields={"topic": TOPIC, "queueId": queue}, skip=skip
    )


def commit(offset: int, *, queue: int = 0) -> FramePattern:
    """A commit by itself (15) of one offset."""
    return FramePattern(
        RequestCode.UPDATE_CONSUMER_OFFSET,
        fields={"topic": TOPIC, "queueId": queue, "commitOffset": offset},
    )
