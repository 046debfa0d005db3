"""A local cluster of real processes: start, watch, kill, restart.

Names are loaded when they are first used, so that the help of ``up`` and ``demo`` loads no event loop.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.cluster.async_cluster import AsyncLocalCluster
    from rewindmq.cluster.errors import ClusterError
    from rewindmq.cluster.local_cluster import LocalCluster
    from rewindmq.cluster.member import Member

__all__ = ["AsyncLocalCluster", "ClusterError", "LocalCluster", "Member"]

_MODULES: Final = MappingProxyType(
    {
        "AsyncLocalCluster": "rewindmq.cluster.async_cluster",
        "ClusterError": "rewindmq.cluster.errors",
        "LocalCluster": "rewindmq.cluster.local_cluster",
        "Member": "rewindmq.cluster.member",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value
