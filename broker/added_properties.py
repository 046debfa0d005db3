"""What the broker adds to the properties of every message that is sent to it (docs/spec/protocol.md 6.5)."""

from __future__ import annotations

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.rules import BrokerRules
from rewindmq.protocol.properties import CLUSTER, MSG_REGION, TRACE_ON


def added_properties(config: BrokerConfig, rules: BrokerRules) -> dict[str, str]:
    """By name, in the order in which they are stored.

    Since 5.0 a message knows its region and whether it is traced: ``AbstractSendMessageProcessor``. Java's
    consumers of 5.x trace no message without a region.
    """
    added = {CLUSTER: config.broker_cluster_name}
    if rules.stores_region:
        added = {MSG_REGION: config.region_id, TRACE_ON: "true" if config.trace_on else "false"} | added
    return added
