"""Decides which engine runs a command: Spark, or this process."""

from __future__ import annotations

from typing import Final

from rewindmq.pipeline.errors import PipelineError

ENGINES: Final = ("auto", "local", "spark")
# Up to this many bytes of commit log ``auto`` chooses this process: one task of Spark reads as much
# (``splitBytes``), so Spark has nothing to share out below it.
LOCAL_LOG: Final = 64 << 20


def size_warning(engine: str, log_bytes: int) -> str | None:
    """Return a sentence if the caller named the local engine for more than ``LOCAL_LOG`` bytes; else None."""
    if engine != "local" or log_bytes <= LOCAL_LOG:
        return None
    return (
        f"the stores have {log_bytes >> 20} MiB of commit log, and --engine local, which uses one core and"
        f" sorts in memory, is meant for at most {LOCAL_LOG >> 20} MiB: --engine spark uses all cores"
    )


def is_local(engine: str, log_bytes: int, *, has_options: bool, has_session: bool) -> bool:
    """Whether this process reads the stores itself.

    Args:
        engine: one of ``ENGINES``; ``local`` reads stores of any size, on one core.
        log_bytes: bytes of commit log of all stores.
        has_options: whether the caller gave options of Spark.
        has_session: whether this process has a Spark session, as a job of ``spark-submit`` has.

    Raises:
        PipelineError: the engine is ``local`` although options of Spark are given.
    """
    if engine == "local" and has_options:
        raise PipelineError("--engine local runs without Spark: leave out --master, --memory and --conf")
    if engine == "auto":
        return log_bytes <= LOCAL_LOG and not has_options and not has_session
    return engine == "local"
