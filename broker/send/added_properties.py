"""Properties that the broker adds to every message sent to it (docs/spec/protocol.md 6.5)."""

from __future__ import annotations

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.protocol.message.properties import CLUSTER, MSG_REGION, TRACE_ON


def added_properties(config: BrokerConfig, profile: BrokerProfile) -> dict[str, str]:
    """Return the properties by name, in the order in which they are stored.

    Since 5.0 a stored message has MSG_REGION and TRACE_ON (``AbstractSendMessageProcessor``). Java consumers
    of 5.x do not trace a message without a region.
    """
    added = {CLUSTER: config.broker_cluster_name}
    if profile.stores_region:
        added = {MSG_REGION: config.region_id, TRACE_ON: "true" if config.trace_on else "false"} | added
    return added
