"""Turns: limit how many runs on one machine start JVMs at the same time, because more would only time out.

A process keeps its turn until it ends; the processes that it starts share the turn.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

_AT_ONCE: Final = 2
_ASK_SECONDS: Final = 0.5
# Set for child processes: their parent has a turn and waits for them.
_HELD: Final = "REWINDMQ_INTEROP_TURN"

_held: list[int] = []
_asking: Final = threading.Lock()


def take_turn() -> None:
    """Wait until fewer than two other runs have a turn; return at once if this run has one."""
    with _asking:
        if _HELD not in os.environ:
            _wait()
            os.environ[_HELD] = str(os.getpid())


def _wait() -> None:
    directory = Path(tempfile.gettempdir())
    files = [
        os.open(directory / f"rewindmq-interop-{number}.lock", os.O_RDWR | os.O_CREAT, 0o666)
        for number in range(_AT_ONCE)
    ]
    waited = False
    while True:
        for file in files:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            _held.append(file)
            for other in files:
                if other != file:
                    os.close(other)
            return
        if not waited:
            print("waiting for other runs of the interop suite on this machine", file=sys.stderr, flush=True)
            waited = True
        time.sleep(_ASK_SECONDS)
