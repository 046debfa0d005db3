"""Ctrl-C in the midst of a call to Spark's Java: an end without a word, whatever Py4J makes of it."""

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
    """Let an interrupt of the main thread be a ``KeyboardInterrupt``, also where Py4J loses it.

    Py4J logs the traceback of an interrupt, and of what fails while it cleans up after one; where it is
    interrupted in a finaliser, all that is left is a connection that Java closes. The user sees none of it.
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
    """Its failures arrive as exceptions; what it logs besides is about itself."""
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
    # Its calls of logging.exception go to the root logger.
    return Path(record.pathname).parent.name != _PY4J
