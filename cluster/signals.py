"""Signals that stop a foreground command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return SIGINT, SIGTERM and SIGHUP; SIGHUP only if it is not ignored, as it is under ``nohup``."""
    wanted = (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return wanted
    return (*wanted, signal.SIGHUP)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Let each stop signal raise ``KeyboardInterrupt``, so that the same clean-up runs; main thread only."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupted_instead_of_ended() -> Iterator[None]:
    """Let a stop signal that would end this process at once raise ``KeyboardInterrupt``, naming the signal.

    The handlers that a program has set itself stay. Outside the main thread, which alone can set them, this
    does nothing.
    """
    ending = [number for number in stop_signals() if signal.getsignal(number) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ending = []
    for number in ending:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)
