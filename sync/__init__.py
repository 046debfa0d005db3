"""Clients and clusters for programs without asyncio.

::

    from rewindmq import Message
    from rewindmq.sync import LocalCluster

    with LocalCluster(brokers=1) as cluster, cluster.producer("my_producer") as producer:
        producer.send(Message("TopicTest", b"Hello"))

The classes have the names, options and methods of those in ``rewindmq``; a method that is awaited there
blocks here. All clients of a process run on one event loop, in a thread of its own; any thread may call them.
docs/sync.md has the details. A name's module is loaded when the name is first used.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.sync.admin import AdminClient
    from rewindmq.sync.cluster import LocalCluster
    from rewindmq.sync.consumers import LitePullConsumer, PullConsumer, PushConsumer
    from rewindmq.sync.producers import Producer, TransactionProducer

__all__ = [
    "AdminClient",
    "LitePullConsumer",
    "LocalCluster",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "TransactionProducer",
]

_MODULES: Final = MappingProxyType(
    {
        "AdminClient": "admin",
        "LitePullConsumer": "consumers",
        "LocalCluster": "cluster",
        "Producer": "producers",
        "PullConsumer": "consumers",
        "PushConsumer": "consumers",
        "TransactionProducer": "producers",
    }
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        import importlib

        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value
