"""Spark settings for a small store: its jobs end before the work for large ones pays off."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Up to this many bytes of commit log. `verify` of a log of 4 MiB takes half the processor time with these
# settings, of a log of 65 MiB twice as much.
SMALL_LOG: Final = 16 << 20
# Java's optimising compiler and its parallel collectors take longer than the job.
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_SETTINGS: Final = MappingProxyType(
    {
        # Every partition is a task, and its start takes longer than its rows.
        "spark.sql.shuffle.partitions": "2",
        # Plans each stage again, after its rows have been counted.
        "spark.sql.adaptive.enabled": "false",
    }
)


def small_settings(master: str, log_bytes: int | None, java_options: str) -> Mapping[str, str]:
    """Return settings for a job that reads ``log_bytes`` on this machine; none if that is much or unknown.

    Args:
        java_options: the driver's Java options otherwise.
    """
    if log_bytes is None or log_bytes > SMALL_LOG or not master.startswith("local"):
        return {}
    return {**_SETTINGS, "spark.driver.extraJavaOptions": f"{java_options} {JAVA_OPTIONS}"}
