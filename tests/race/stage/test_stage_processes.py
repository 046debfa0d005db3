"""The stage of real processes: it leaves no process or file, however the play ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalCluster,
    Message,
    Producer,
    PushConsumer,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.points import Point
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.stage.stage import TOPIC, Stage
from tests.race.stages import TIME_SCALE, act, held_answer
from tests.support.processes import WAIT_SECONDS, children, needs_proc

FROM_FIRST = {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}


def own_children() -> set[int]:
    """Return the running child processes of this process."""
    return children(os.getpid())


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


# The default group plays one scenario here: every play starts four processes or more.


@needs_proc
@pytest.mark.parametrize(
    "ending",
    [pytest.param("end", marks=pytest.mark.slow), pytest.param("error", marks=pytest.mark.slow), "cancel"],
)
def test_a_play_leaves_no_process_or_file(ending: str, tmp_path: Path) -> None:
    before = own_children()
    seen: set[int] = set()

    async def play(stage: Stage) -> None:
        await stage.open(consumers=2)
        await stage.send(1)
        await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.LISTENER_RETURNED)
        seen.update(own_children() - before)
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
    assert len(seen) >= 4  # name server, broker, two workers
    assert own_children() <= before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_in_real_time_only_a_consumer_with_a_hold_gets_a_proxy() -> None:
    async def play(stage: Stage) -> None:
        await stage.open(consumers=2)
        await stage.consumer("A")
        with pytest.raises(RaceError, match="consumer A runs without a proxy: set the hold before"):
            stage.hold(held_answer(0), consumer="A")
        hold = stage.hold(FramePattern(RequestCode.HEART_BEAT), consumer="B")
        b = asyncio.ensure_future(stage.consumer("B", options=FROM_FIRST))
        await hold.wait()
        hold.release()
        await b

    history = act(play, is_held=False)
    assert {event.process for event in history.of(Lab.FRAME_SENT)} == {"consumer-B", "broker-a", "namesrv"}


@pytest.mark.slow
def test_all_clocks_agree() -> None:
    """A commit is sent, received and then observed, by the clocks of three processes."""

    async def play(stage: Stage) -> None:
        await stage.open()
        await stage.send(1)
        await stage.consumer("A", options=FROM_FIRST)
        await stage.until(Point.COMMIT_RECEIVED, offset=1, topic=TOPIC)
        assert await stage.stored() == 1

    history = act(play, is_held=False)
    sent = history.of(Point.COMMIT_SENT, offset=1, topic=TOPIC)[0]
    received = history.of(Point.COMMIT_RECEIVED, offset=1, topic=TOPIC)[0]
    stored = history.of(Lab.STORED_OFFSET)[0]
    assert sent.at < received.at < stored.at
    # In real seconds; a clock with another origin would be further off.
    assert stored.at - sent.at < WAIT_SECONDS / TIME_SCALE


@pytest.mark.slow
@needs_proc
def test_a_consumer_that_dies_is_noticed() -> None:
    before = own_children()

    async def play(stage: Stage) -> None:
        await stage.open()
        consumer = await stage.consumer("A")
        (worker,) = [pid for pid in own_children() - before if b"stage.worker" in _command_of(pid)]
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(RaceError, match="a consumer's process has ended"):
            await consumer.suspend()

    act(play)


def _command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_worker_ends_with_its_stage() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rewindmq.race.stage.worker", "--time-scale", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(WAIT_SECONDS) == 0


def test_a_broker_records_the_points_it_passes(tmp_path: Path) -> None:
    async def consume_one(namesrv: str) -> None:
        consumed = asyncio.Event()

        async def listen(messages: Sequence[object]) -> ConsumeConcurrentlyStatus:
            consumed.set()
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        async with Producer("P", namesrv) as producer:
            await producer.send(Message("T", b"x"))
        first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        consumer = PushConsumer("G", namesrv, consume_from_where=first)
        consumer.subscribe("T")
        consumer.register_message_listener(listen)
        async with consumer:
            await consumed.wait()

    with LocalCluster(1, time_scale=TIME_SCALE, events_directory=tmp_path) as cluster:
        asyncio.run(consume_one(cluster.namesrv_address))
    lines = [json.loads(line) for line in (tmp_path / "broker-a.jsonl").read_text().splitlines()]
    assert {"broker.offset_queried", "broker.pull_answered", "broker.commit_received"} <= {
        line["kind"] for line in lines
    }
    assert all(line.keys() == {"time", "at", "kind", "details"} for line in lines)
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)


def test_events_that_cannot_be_written_are_one_line() -> None:
    command = [sys.executable, "-m", "rewindmq", "broker", "-p", "0", "--events", "/no/such/folder/x"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert (ended.returncode, ended.stderr) == (
        1,
        "rewindmq broker: /no/such/folder/x: No such file or directory\n",
    )


def test_a_cluster_that_cannot_start_is_one_line() -> None:
    async def play(stage: Stage) -> None:
        await stage.open(consumers=0, broker_config={"flushDiskType": "SOMETIMES"})

    with pytest.raises(RewindMQError, match=r"broker-a did not start .*flushDiskType = 'SOMETIMES'"):
        act(play)
