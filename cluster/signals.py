"""The signals that end what runs in the foreground."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def stop_signals() -> tuple[signal.Signals, ...]:
    """Ctrl-C, SIGTERM and, unless ``nohup`` keeps it away, the end of the terminal."""
    wanted = (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return wanted
    return (*wanted, signal.SIGHUP)


@contextmanager
def stopped_like_ctrl_c() -> Iterator[None]:
    """Let each of them raise ``KeyboardInterrupt``, for what cleans up after that; main thread only."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
