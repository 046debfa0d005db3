"""Sends each frame while a bystander asks something cheap, and measures the server's steps."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from tools.worst_frames import broker_frames, namesrv_hall
from tools.worst_frames.broker_hall import BrokerHall
from tools.worst_frames.frames import Hall, WorstFrame
from tools.worst_frames.meter import MeteredWorld
from tools.worst_frames.namesrv_hall import NamesrvHall
from tools.worst_frames.sizes import Sizes

_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FrameHold:
    """What one frame, timer or close did to the server.

    Attributes:
        code: None for timers and closes.
        text: what was in the frame and in the tables.
        answer: the response code; None without a response.
        hold_ms: processor time of the longest step on the event loop.
        wait_ms: processor time of the server between a bystander's request and its response, at most.
        worker_ms: processor time of the longest call on a worker thread.
        answered: the bystander's requests that were answered before the frame's response.
    """

    code: RequestCode | None
    text: str
    answer: int | None
    hold_ms: float
    wait_ms: float
    worker_ms: float
    answered: int

    @property
    def name(self) -> str:
        return self.text if self.code is None else f"{self.code.name} ({self.code.value})"


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A kind of server to measure.

    Attributes:
        others: what is not a request: title and function, which resets the meter itself.
    """

    title: str
    hall: type[BrokerHall | NamesrvHall]
    frames: Sequence[WorstFrame]
    others: Sequence[tuple[str, Callable[[Any], Awaitable[None]]]]


KINDS: Final = (
    ServerKind(
        "name server",
        NamesrvHall,
        namesrv_hall.FRAMES,
        (("the end of a connection with 500 brokers", namesrv_hall.closed_connection),),
    ),
    ServerKind(
        "broker",
        BrokerHall,
        broker_frames.FRAMES,
        (
            ("two minutes of timers", broker_frames.timers),
            ("the end of a connection with 500 groups and 10,000 pulls", broker_frames.closed_connection),
        ),
    ),
)


def measure(
    kind: ServerKind,
    sizes: Sizes,
    codes: Collection[int] = (),
    report: Callable[[FrameHold], None] = lambda hold: None,
) -> list[FrameHold]:
    """Measure the frames of one kind of server.

    Args:
        codes: the request codes to measure; empty means all, with timers and closes.
        report: called after each measurement.

    Raises:
        AssertionError: a response has an unexpected code: the frame did not do its work.
    """
    with TemporaryDirectory(prefix="rewindmq-worst-frames-") as folder:
        world = MeteredWorld()
        return world.run(_measure(kind, kind.hall(world, sizes, Path(folder)), codes, report))


async def _measure(
    kind: ServerKind, hall: Any, codes: Collection[int], report: Callable[[FrameHold], None]
) -> list[FrameHold]:
    holds = []
    await hall.open()
    gc.disable()
    try:
        for frame in kind.frames:
            if not codes or frame.code in codes:
                holds.append(await _send(hall, frame))
                report(holds[-1])
                gc.collect(0)
        for text, act in () if codes else kind.others:
            await act(hall)
            meter = hall.world.meter
            holds.append(FrameHold(None, text, None, meter.longest_ns / _NS, 0.0, meter.worker_ns / _NS, 0))
            report(holds[-1])
    finally:
        gc.enable()
        await hall.close()
    return holds


async def _send(hall: Hall, frame: WorstFrame) -> FrameHold:
    meter, sender, bystander = hall.world.meter, hall.client(), hall.client()
    command = await frame.make(hall)
    for client in (sender, bystander):
        await hall.ask(client, hall.bystander())
    meter.reset(hall.host)
    asked = asyncio.ensure_future(hall.ask(sender, command))
    waits = await _bystand(hall, bystander, asked)
    answer: RemotingCommand = await asked
    assert answer.code in frame.codes, f"{frame.code.name} ({frame.text}): {answer.code} {answer.remark}"
    return FrameHold(
        frame.code,
        frame.text,
        answer.code,
        meter.longest_ns / _NS,
        max(waits) / _NS,
        meter.worker_ns / _NS,
        len(waits),
    )


async def _bystand(hall: Hall, client: Any, until: asyncio.Future[Any]) -> list[int]:
    """Ask something cheap again and again; return how long the server worked before each response, ns."""
    waits: list[int] = []
    while not waits or not until.done():
        began = hall.world.meter.loop_ns
        (await hall.ask(client, hall.bystander())).require_success()
        waits.append(hall.world.meter.loop_ns - began)
    return waits
