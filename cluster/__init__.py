"""A local cluster of real processes: start, watch, kill, restart."""

from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.member import Member

__all__ = ["AsyncLocalCluster", "ClusterError", "LocalCluster", "Member"]
