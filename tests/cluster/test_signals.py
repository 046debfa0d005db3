"""Signals that would end a program without a clean-up interrupt it instead."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from rewindmq.cluster.signals import interrupted_instead_of_ended

NUMBERS = [signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def default() -> Iterator[None]:
    """The signals have the handlers that a new process has."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_interrupts_and_is_as_before_afterwards(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt, match=number.name), interrupted_instead_of_ended():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is signal.SIG_DFL


def test_handlers_of_the_program_stay() -> None:
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    signal.signal(signal.SIGTERM, note)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interrupted_instead_of_ended():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
    assert caught == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is note


def test_in_another_thread_nothing_changes() -> None:
    seen: list[object] = []

    def look() -> None:
        with interrupted_instead_of_ended():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
