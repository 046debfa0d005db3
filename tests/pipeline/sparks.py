"""Settings of the Spark sessions that tests start: jobs of a few KiB must not cost what large ones may.

The product's own settings are those of the programs that ``test_processes`` and ``test_standalone`` start.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from rewindmq.pipeline.spark.small import JAVA_OPTIONS as JAVA_OPTIONS

SMALL_JOBS: Final = MappingProxyType(
    {
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.shuffle.partitions": "2",
        # Planning again in the midst of a job, and compiling each stage, take longer than the rows do.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
)
