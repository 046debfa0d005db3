"""docs/race/proxy.md describes what the proxy prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.race.history import Lab
from rewindmq.race.proxy.action import Drop, Duplicate, Fail
from rewindmq.race.proxy.frame import NUMBER_FIELDS, TEXT_FIELDS
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.stage.stage import Stage
from tests.race.proxy.venue import COMMIT, PULL, Offsets, Play, Venue, commit
from tests.race.stages import simulate

PAGE = Path(__file__).resolve().parents[3] / "docs" / "race" / "proxy.md"
_TYPES = {
    "string": str,
    "integer": int,
    "integer or null": (int, type(None)),
    "integer; a string if the sender wrote no number": (int, str),
    "object": dict,
    "number": float,
}


def table(head: str) -> dict[str, str]:
    """Return the first column's names and the second column of the table whose head begins so."""
    rows = PAGE.read_text().partition(head)[2].partition("\n\n")[0].splitlines()[2:]
    found = {}
    for row in rows:
        names, text = (cell.strip() for cell in row.split("|")[1:3])
        found.update(dict.fromkeys(re.findall(r"`([\w.]+)`", names), text))
    return found


def check(details: dict[str, Any]) -> None:
    frame, fields = table("| key of `details` | type"), table("| key of `fields` | type")
    for name, value in details.items():
        assert isinstance(value, _TYPES[frame[name]]), name  # type: ignore[arg-type]
    for name, value in details["fields"].items():
        kind = fields[name]
        assert isinstance(value, list if kind.startswith("list") else _TYPES[kind]), name  # type: ignore[arg-type]


def test_the_page_describes_the_frames_of_rules(play: Play) -> None:
    async def scene(venue: Venue) -> None:
        proxy = await venue.proxy(await venue.server(Offsets().handlers()))
        client = venue.client()
        for action in (Duplicate(), Fail(ResponseCode.SYSTEM_BUSY, "")):
            proxy.add_rule(FramePattern(COMMIT), action)
        hold = proxy.hold(FramePattern(COMMIT, fields={"commitOffset": 3}))
        calls = [client.invoke(proxy.address, commit(offset)) for offset in range(1, 4)]
        await hold.wait()
        hold.release()
        for call in calls:
            await call
        dropped = proxy.add_rule(FramePattern(COMMIT), Drop())
        await client.invoke_oneway(proxy.address, commit(4))
        await client.invoke_oneway(proxy.address, RemotingCommand(9_999))
        await dropped.wait()
        kinds = table("| kind | the proxy")
        events = list(venue.history)
        assert {event.kind for event in events} <= {Lab(kind) for kind in kinds}
        assert len({event.kind for event in events}) == 5
        for event in events:
            assert set(json.loads(event.to_json())) == set(table("| key | type | value"))
            check(dict(event.details))

    play(scene)


def test_the_page_describes_the_frames_of_a_reset() -> None:
    async def run(stage: Stage) -> None:
        await stage.open()
        await stage.send(3)
        hold = stage.hold(FramePattern(PULL), consumer="A")
        await stage.consumer("A")
        await hold.wait()
        hold.release()
        await stage.sleep(20)
        await stage.reset(0)
        await stage.sleep(15)

    history = simulate(run)
    frames = [event.details for event in history if str(event.kind).startswith("frame.")]
    assert {int(RequestCode.RESET_CONSUMER_CLIENT_OFFSET), int(PULL)} <= {frame["code"] for frame in frames}
    for details in frames:
        check(dict(details))
    assert any("targets" in frame["fields"] for frame in frames)
    assert any("offsets" in frame["fields"] for frame in frames)


def test_the_page_names_every_field() -> None:
    assert {*TEXT_FIELDS, *NUMBER_FIELDS, "offsets", "targets"} == set(table("| key of `fields` | type"))


def test_the_page_names_every_kind() -> None:
    kinds = {str(kind) for kind in Lab if str(kind).startswith("frame.")} | {str(Lab.NOTE)}
    assert kinds == set(table("| kind | the proxy"))
