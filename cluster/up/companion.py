"""Companion: what ``rewindmq up`` runs beside its cluster, such as the control port of the test kit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.up.entrances import Entrances
from rewindmq.cluster.up.members import Members

# Called with a cluster that runs; its context ends before the cluster does.
Companion = Callable[[LocalCluster, Members], AbstractAsyncContextManager[Entrances]]
