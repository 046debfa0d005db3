"""A parent freezes a process, pretends that its disk is full, and moves its wall clock."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindmq.protocol.remoting.process.parent_commands import ParentCommands, TravellingClock
from rewindmq.protocol.remoting.runtime import SystemClock


class Service:
    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.error: Exception | None = None
        self.disk_full: list[bool] = []
        self.clock_moves: list[int] = []

    def write_state(self, folder: Path) -> None:
        self.folders.append(folder)
        if self.error is not None:
            raise self.error

    def set_disk_full(self, is_full: bool) -> None:
        self.disk_full.append(is_full)

    def clock_changed(self, moved_ms: int) -> None:
        self.clock_moves.append(moved_ms)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    with contextlib.suppress(OSError):
        os.close(writing)


def freeze(number: int) -> bytes:
    return json.dumps({"freeze": "/x", "number": number}).encode() + b"\n"


def test_a_frozen_process_waits_for_the_next_line(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service()
    commands = ParentCommands(service, TravellingClock(), pipe[0])
    os.write(pipe[1], freeze(7))
    reading = threading.Thread(target=commands.read)
    reading.start()
    while not service.folders:
        reading.join(0.01)
    assert reading.is_alive()
    os.write(pipe[1], b"{}\n")
    reading.join()
    assert service.folders == [Path("/x")]
    assert capsys.readouterr().out == '{"done":7}\n'


def test_lines_that_arrive_together_are_followed_in_order(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(pipe[1], freeze(1) + b"{}\n" + freeze(2) + b"{}\n")
    assert ParentCommands(Service(), TravellingClock(), pipe[0]).read()
    assert capsys.readouterr().out == '{"done":1}\n{"done":2}\n'


def test_a_state_that_cannot_be_written_is_answered_and_freezes_nothing(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service()
    service.error = OSError("disk full")
    os.write(pipe[1], freeze(3))
    assert ParentCommands(service, TravellingClock(), pipe[0]).read()
    assert capsys.readouterr().out == '{"failed":3,"reason":"disk full"}\n'


def test_the_end_of_the_parent_ends_the_freeze(pipe: tuple[int, int]) -> None:
    commands = ParentCommands(Service(), TravellingClock(), pipe[0])
    os.write(pipe[1], freeze(1))
    os.close(pipe[1])
    assert commands.read()
    assert not commands.read()


@pytest.mark.parametrize(
    "line", [b"more", b"{}", b"[]", b"\xff", b'{"freeze": 1}', b'{"freeze":"/x","number":"x"}']
)
def test_other_lines_are_ignored(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str], line: bytes
) -> None:
    os.write(pipe[1], line + b"\n")
    assert ParentCommands(Service(), TravellingClock(), pipe[0]).read()
    assert capsys.readouterr().out == ""


def test_the_disk_and_the_clock_follow_the_parent(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    service, clock = Service(), TravellingClock()
    commands = ParentCommands(service, clock, pipe[0])
    monotonic = clock.monotonic()
    os.write(pipe[1], b'{"diskFull": true, "number": 1}\n{"aheadMs": 5000000000, "number": 2}\n')
    assert commands.read()
    assert capsys.readouterr().out == '{"done":1}\n{"done":2}\n'
    assert service.disk_full == [True]
    assert service.clock_moves == [5_000_000_000]
    ahead = clock.now_ms() - SystemClock().now_ms()
    assert 5_000_000_000 - 60_000 < ahead < 5_000_000_000 + 60_000
    assert clock.monotonic() - monotonic < 1_000
    os.write(pipe[1], b'{"diskFull": false, "number": 3}\n{"aheadMs": 0, "number": 4}\n')
    assert commands.read()
    assert service.disk_full == [True, False]
    assert service.clock_moves == [5_000_000_000, -5_000_000_000]
    assert abs(clock.now_ms() - SystemClock().now_ms()) < 60_000
