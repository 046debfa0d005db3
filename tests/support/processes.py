"""Processes that a test watches from outside, by pid."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from typing import Final

# Seconds; only a hang takes as long.
WAIT_SECONDS: Final = 60.0


class Watched:
    """Processes known by pid, held so that a pid used again is not mistaken for one of them."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._descriptors = [os.pidfd_open(pid) for pid in pids]

    def wait_gone(self) -> None:
        """Wait until every process has ended, whoever its parent is."""
        for descriptor in self._descriptors:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            assert poll.poll(WAIT_SECONDS * 1_000), "a process is still there"

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
