"""A parent freezes a process: the state is written, and nothing more is read until the next line."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindmq.protocol.remoting.process.freeze import FreezeCommands


class Service:
    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.error: Exception | None = None

    def write_state(self, folder: Path) -> None:
        self.folders.append(folder)
        if self.error is not None:
            raise self.error


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
    commands = FreezeCommands(service, pipe[0])
    os.write(pipe[1], freeze(7))
    reading = threading.Thread(target=commands.read)
    reading.start()
    while not service.folders:
        reading.join(0.01)
    assert reading.is_alive()
    os.write(pipe[1], b"{}\n")
    reading.join()
    assert service.folders == [Path("/x")]
    assert capsys.readouterr().out == '{"frozen":7}\n'


def test_lines_that_arrive_together_are_followed_in_order(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    os.write(pipe[1], freeze(1) + b"{}\n" + freeze(2) + b"{}\n")
    assert FreezeCommands(Service(), pipe[0]).read()
    assert capsys.readouterr().out == '{"frozen":1}\n{"frozen":2}\n'


def test_a_state_that_cannot_be_written_is_answered_and_freezes_nothing(
    pipe: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service()
    service.error = OSError("disk full")
    os.write(pipe[1], freeze(3))
    assert FreezeCommands(service, pipe[0]).read()
    assert capsys.readouterr().out == '{"failed":3,"reason":"disk full"}\n'


def test_the_end_of_the_parent_ends_the_freeze(pipe: tuple[int, int]) -> None:
    commands = FreezeCommands(Service(), pipe[0])
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
    assert FreezeCommands(Service(), pipe[0]).read()
    assert capsys.readouterr().out == ""
