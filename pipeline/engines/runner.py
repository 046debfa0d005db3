"""What a job's function takes to run its tasks: a session of Spark, or an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewindmq.pipeline.engines.engine import Engine
from rewindmq.pipeline.engines.local_engine import LocalEngine
from rewindmq.pipeline.engines.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Runner = SparkSession | SparkEngine | LocalEngine


def engine_of(runner: Runner) -> Engine:
    """Return the engine itself, or the engine of a Spark session."""
    return runner if isinstance(runner, SparkEngine | LocalEngine) else SparkEngine(runner)
