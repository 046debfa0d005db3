"""Tells the attempts of a task apart."""

from __future__ import annotations

import sys
from typing import Any


def attempt_id() -> int:
    """Return the number of this attempt of a Spark task; 0 outside of Spark's tasks."""
    context: Any = getattr(sys.modules.get("pyspark"), "TaskContext", None)
    running = None if context is None else context.get()
    return 0 if running is None else int(running.taskAttemptId())
