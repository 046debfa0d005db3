"""Builds the statistics. ``BrokerStats`` is their facade."""

from __future__ import annotations

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.stats.broker_stats import BrokerStats
from rewindmq.broker.stats.manager import BrokerStatsManager
from rewindmq.protocol.remoting.runtime import Runtime


def build(runtime: Runtime, config: BrokerConfig, profile: BrokerProfile) -> BrokerStats:
    """Return the statistics of a broker that starts now; they also hear of the process's slow requests."""
    deletes = config.auto_delete_unused_stats
    items = BrokerStatsManager(
        config.broker_cluster_name,
        deletes=profile.deletes_stats if deletes is None else deletes,
        idle_minutes=config.max_stats_idle_time_in_minutes,
        has_added=profile.adds_stats,
        system_topics=profile.system_topics,
    )
    stats = BrokerStats(runtime.clock.now_ms(), runtime.clock.monotonic(), items)
    if runtime.stalls is not None:
        runtime.stalls.on_slow_request = stats.on_slow_request
    return stats
