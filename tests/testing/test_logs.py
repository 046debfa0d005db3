"""The logs of a test's cluster, as a failed test shows them."""

from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.testing.clusters.servers import Servers, logs_since


def test_a_failure_after_the_end_of_the_cluster_has_no_logs() -> None:
    """pytest reports a failed clean-up of the last test after the fixtures of the session have ended."""
    assert logs_since(Servers("127.0.0.1:9876", {}, LocalCluster()), {}) == {}
