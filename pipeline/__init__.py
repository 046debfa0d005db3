"""A broker's store read offline: a data source for PySpark, and jobs that compact, index, plan and verify.

Names are loaded on first use, so that a command's help loads neither Spark nor Arrow.
The jobs are ``compact.job.compact``, ``index.job.build_index``, ``index.install.install_index``,
``replay.job.replay_plan`` and ``verify.job.verify``.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.local_engine import LocalEngine
    from rewindmq.pipeline.engines.view_rows import read_table
    from rewindmq.pipeline.errors import PipelineError
    from rewindmq.pipeline.reading import read_store
    from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot, take_snapshot
    from rewindmq.pipeline.spark.session import make_session, register

__all__ = [
    "LocalEngine",
    "PipelineError",
    "StoreSnapshot",
    "make_session",
    "read_store",
    "read_table",
    "register",
    "take_snapshot",
]

_MODULES: Final = MappingProxyType(
    {
        "LocalEngine": "rewindmq.pipeline.engines.local_engine",
        "PipelineError": "rewindmq.pipeline.errors",
        "StoreSnapshot": "rewindmq.pipeline.snapshot.snapshot",
        "make_session": "rewindmq.pipeline.spark.session",
        "read_store": "rewindmq.pipeline.reading",
        "read_table": "rewindmq.pipeline.engines.view_rows",
        "register": "rewindmq.pipeline.spark.session",
        "take_snapshot": "rewindmq.pipeline.snapshot.snapshot",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value
