"""Turns failures of Spark jobs into one-line errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rewindmq.pipeline.errors import PipelineError

# The last line of a Python worker's traceback, anywhere in Spark's message.
_PIPELINE_ERROR: Final = re.compile(r"^rewindmq\.pipeline\.errors\.PipelineError: (.*)$", re.MULTILINE)
_WORKER: Final = re.compile(r"^([A-Za-z_.]+(?:Error|Exception)): (.*)$", re.MULTILINE)
_NO_MEMORY: Final = ("OutOfMemoryError", "Cannot allocate memory", "MemoryError")


class SparkError(PipelineError):
    """A failure that Spark's own log may explain."""


@contextmanager
def in_one_line() -> Iterator[None]:
    """Turn Spark's exceptions into ``SparkError``, and restore the PipelineErrors that workers raise.

    Leave this context before you stop the session: Spark's errors ask the session for their text.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise described(str(error)) from None


def described(text: str) -> PipelineError:
    """Return the error for the text of a Spark exception."""
    reported = _PIPELINE_ERROR.findall(text)
    if reported:
        return PipelineError(str(reported[-1]).strip())
    if any(name in text for name in _NO_MEMORY):
        return SparkError("Spark ran out of memory: give it more with --memory, as in --memory 4g")
    raised = _WORKER.findall(text)
    reason = ": ".join(raised[-1]) if raised else text.strip().partition("\n")[0]
    return SparkError(f"the Spark job failed: {reason}")
