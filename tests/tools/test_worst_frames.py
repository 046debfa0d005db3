"""The worst legal frame of every request: each does its work within the budget of the event loop."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.server import RemotingServer
from tools.worst_frames.measuring import KINDS, FrameHold, ServerKind, measure
from tools.worst_frames.meter import MeteredWorld
from tools.worst_frames.page import BUDGET_MS, PAGE, replaced, table
from tools.worst_frames.sizes import FULL, reduced

# The default group's tables are a small part of the limits.
_DIVISOR = 500
# On a busy machine, a step may take twice the processor time.
_MOST_MS = 2 * BUDGET_MS


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_every_served_request_has_a_worst_frame(kind: ServerKind) -> None:
    assert {frame.code for frame in kind.frames} == set(kind.hall.codes)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_the_page_has_a_row_for_every_worst_frame(kind: ServerKind) -> None:
    part = PAGE.read_text().partition(f"<!-- {kind.title} -->")[2].partition("<!-- end of")[0]
    rows = set(re.findall(r"^\| ([A-Z0-9_]+) \((\d+)\) \| ([^|]*) \|", part, re.MULTILINE))
    expected = {(frame.code.name, str(frame.code.value), frame.text or "one entry") for frame in kind.frames}
    assert rows == expected, "run ./scripts/worst_frames --write"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_at_small_tables_every_worst_frame_is_within_the_budget(kind: ServerKind) -> None:
    assert too_long(measure(kind, reduced(_DIVISOR))) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_at_full_tables_every_worst_frame_is_within_the_budget(kind: ServerKind) -> None:
    assert too_long(measure(kind, FULL)) == []


def too_long(holds: Sequence[FrameHold]) -> list[FrameHold]:
    """The holds that exceed the budget by more than a busy machine explains."""
    return [hold for hold in holds if hold.hold_ms > _MOST_MS]


def burn(milliseconds: int) -> None:
    end = time.thread_time() + milliseconds / 1_000
    while time.thread_time() < end:
        pass


async def _burn_in_steps(connection: Connection, asked: RemotingCommand) -> RemotingCommand:
    for _ in range(4):
        burn(10)
        await asyncio.sleep(0)
    return RemotingCommand(0)


def _burn_at_once(connection: Connection, asked: RemotingCommand) -> RemotingCommand:
    burn(40)
    return RemotingCommand(0)


@pytest.mark.parametrize(("handler", "least", "most"), [(_burn_at_once, 40, 80), (_burn_in_steps, 10, 30)])
def test_the_meter_sees_how_long_one_step_of_the_server_takes(
    handler: Handler, least: int, most: int
) -> None:
    world = MeteredWorld()

    async def scenario() -> None:
        server = RemotingServer(world.runtime("10.0.0.1"), {RequestCode.PULL_MESSAGE: handler})
        await server.start("10.0.0.1", 9)
        client = RemotingClient(world.runtime("10.0.0.2"))
        world.meter.reset("10.0.0.1")
        await client.invoke("10.0.0.1:9", RemotingCommand(RequestCode.PULL_MESSAGE), 60.0)
        burn(100)
        await client.close()
        await server.close()

    world.run(scenario())
    assert least <= world.meter.longest_ns / 1_000_000 < most
    assert 40 <= world.meter.loop_ns / 1_000_000 < 90


def test_a_table_replaces_the_one_in_the_page_and_marks_what_exceeds_the_budget() -> None:
    holds = [
        FrameHold(RequestCode.PULL_MESSAGE, "", 0, 1.25, 2.0, 0.0, 3),
        FrameHold(None, "two minutes of timers", None, 60.0, 0.0, 12.0, 0),
    ]
    page = "before\n<!-- broker -->\nold\n<!-- end of broker -->\nafter\n"
    assert replaced(page, {"broker": table(holds)}).splitlines()[3:] == [
        "|---|---|---|---|---|",
        "| – | two minutes of timers | **60** | – | 12 |",
        "| PULL_MESSAGE (11) | one entry | 1.2 | 2.0 | – |",
        "<!-- end of broker -->",
        "after",
    ]
