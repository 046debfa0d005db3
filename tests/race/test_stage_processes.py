"""The stage of real processes: nothing of it is left, however the play ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rewindmq.cluster import LocalCluster
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.stage.processes import ProcessStage
from rewindmq.race.stage.stage import TOPIC, Stage
from tests.race.stages import TIME_SCALE, act, held_answer

FROM_FIRST = {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}


def children() -> set[int]:
    """Processes started by this one that still exist."""
    found = set()
    for thread in _THREADS.iterdir():
        # A thread may have ended since.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.update(map(int, (thread / "children").read_text().split()))
    return found


_THREADS = Path(f"/proc/{os.getpid()}/task")


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


needs_proc = pytest.mark.skipif(not _THREADS.exists(), reason="needs Linux's list of children")


@needs_proc
@pytest.mark.parametrize("ending", ["end", "error", "cancel"])
def test_nothing_is_left_of_a_play(ending: str, tmp_path: Path) -> None:
    before = children()
    seen: set[int] = set()

    async def play(stage: Stage) -> None:
        await stage.open(members=3)
        await stage.send(1)
        await stage.member("A", options=FROM_FIRST)
        await stage.until(Point.LISTENER_RETURNED)
        seen.update(children() - before)
        if ending == "error":
            raise RaceError("broken off")
        if ending == "cancel":
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await stage.sleep(1000.0)

    expected: dict[str, type[BaseException]] = {"error": RaceError, "cancel": asyncio.CancelledError}
    if ending in expected:
        with pytest.raises(expected[ending]):
            act(play)
    else:
        act(play)
    assert len(seen) >= 5  # name server, broker, three workers
    assert children() <= before
    assert list(tmp_path.iterdir()) == []


def test_a_member_without_a_proxy_cannot_be_held() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.member("A")
        with pytest.raises(RaceError, match="member A runs without a proxy: ask for the hold before"):
            stage.hold(held_answer(0), member="A")
        stage.hold(held_answer(0), member="B")

    history = act(play, is_held=False)
    assert not history.of(Lab.FRAME_SENT)


def test_a_member_with_a_hold_gets_a_proxy_in_real_time_too() -> None:
    async def play(stage: Stage) -> None:
        await stage.open()
        hold = stage.hold(held_answer(0), member="A")
        await stage.member("A", options=FROM_FIRST)
        await hold.wait()

    history = act(play, is_held=False)
    assert {event.process for event in history.of(Lab.FRAME_SENT)} >= {"consumer-A", "broker-a", "namesrv"}


def test_all_clocks_agree() -> None:
    """A commit is sent, received and then seen, by the clocks of three processes."""

    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(1)
        await stage.member("A", options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=1, topic=TOPIC)
        assert await stage.stored() == 1

    history = act(play, is_held=False)
    sent = history.of(Point.COMMIT_SENT, offset=1, topic=TOPIC)[0]
    received = history.of(Point.COMMIT_RECEIVED, offset=1, topic=TOPIC)[0]
    stored = history.of(Lab.STORED_OFFSET)[0]
    assert sent.at < received.at < stored.at
    assert stored.at - sent.at < 1.0 / TIME_SCALE


def test_a_consumer_that_dies_is_noticed() -> None:
    async def main() -> None:
        async with ProcessStage(Profile.V49, ResetMode.CLASSIC, time_scale=TIME_SCALE) as stage:
            await stage.open()
            member = await stage.member("A")
            await member.worker.kill()
            with pytest.raises(RaceError, match="a consumer's process has ended"):
                await member.suspend()

    asyncio.run(main())


def test_a_worker_ends_when_its_stage_does() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rewindmq.race.stage.worker", "--time-scale", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_broker_writes_down_the_points_it_passes(tmp_path: Path) -> None:
    with LocalCluster(1, time_scale=TIME_SCALE, events_directory=tmp_path) as cluster:
        address = cluster.namesrv_address
        for arguments in (["produce", "-n", address, "-t", "T", "x"],):
            subprocess.run([sys.executable, "-m", "rewindmq", *arguments], check=True, capture_output=True)
        consume = ["consume", "-n", address, "-t", "T", "-g", "g", "--from", "first", "-c", "1"]
        subprocess.run([sys.executable, "-m", "rewindmq", *consume], check=True, capture_output=True)
    lines = [json.loads(line) for line in (tmp_path / "broker-a.jsonl").read_text().splitlines()]
    assert {"broker.offset_queried", "broker.pull_answered", "broker.commit_received"} <= {
        line["kind"] for line in lines
    }
    assert all(line.keys() == {"time", "at", "kind", "details"} for line in lines)
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)


def test_events_that_cannot_be_written_are_one_line() -> None:
    command = [sys.executable, "-m", "rewindmq", "broker", "-p", "0", "--events", "/no/such/folder/x"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stderr) == (
        1,
        "rewindmq broker: /no/such/folder/x: No such file or directory\n",
    )


def test_a_cluster_that_cannot_start_is_one_line() -> None:
    async def play(stage: Stage) -> None:
        await stage.open(broker_config={"flushDiskType": "SOMETIMES"})

    with pytest.raises(RewindMQError, match=r"broker-a did not start .*flushDiskType = 'SOMETIMES'"):
        act(play)
