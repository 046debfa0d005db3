"""How Spark finds the data source without being told: it looks for a ``DefaultSource`` in modules whose names
begin with ``pyspark_``."""

from __future__ import annotations

from contextlib import suppress

# Spark imports this wherever RewindMQ is installed; without the extra it must find nothing rather than fail.
with suppress(ImportError):
    from rewindmq.pipeline.source import StoreDataSource as DefaultSource

    __all__ = ["DefaultSource"]
