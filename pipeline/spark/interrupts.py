"""Turns Ctrl-C during a call to Spark's Java into a quiet ``KeyboardInterrupt``."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

_PY4J: Final = "py4j"


@contextmanager
def interruptible() -> Iterator[None]:
    """Make an interrupt of the main thread a ``KeyboardInterrupt``, even if Py4J loses it.

    Py4J logs a traceback for the interrupt and for failures of the cleanup after it. If the interrupt hits a
    finaliser, Java only closes the connection. This context hides all of it from the user.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    was_interrupted = False

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        with _quiet_py4j():
            yield
    except Exception:
        if was_interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Silence Py4J's logging: its failures also arrive as exceptions."""
    root, own = logging.getLogger(), logging.getLogger(_PY4J)
    level = own.level
    own.setLevel(logging.CRITICAL)
    root.addFilter(_is_not_of_py4j)
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_py4j)
        own.setLevel(level)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    # Py4J calls logging.exception, which logs to the root logger.
    return Path(record.pathname).parent.name != _PY4J
