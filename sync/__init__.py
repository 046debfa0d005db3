"""Clients and clusters for programs without asyncio.

::

    from rewindmq import Message
    from rewindmq.sync import LocalCluster

    with LocalCluster(brokers=1) as cluster, cluster.producer("my_producer") as producer:
        producer.send(Message("TopicTest", b"Hello"))

The classes have the names, options and methods of those in ``rewindmq``; a method that is awaited there
blocks here. All clients of a process run on one event loop, in a thread of its own; any thread may call them.
docs/sync.md has the details.
"""

from __future__ import annotations

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
