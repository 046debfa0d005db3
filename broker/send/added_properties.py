"""Properties that the broker adds to every message sent to it (docs/spec/protocol.md 6.5)."""

from __future__ import annotations

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.protocol.message.properties import (
    CLUSTER,
    MSG_REGION,
    PROPERTY_SEPARATOR,
    TRACE_ON,
    format_properties,
)


def added_properties(config: BrokerConfig, profile: BrokerProfile) -> dict[str, str]:
    """Return the properties by name, in the order in which they are stored.

    Since 5.0 a stored message has MSG_REGION and TRACE_ON (``AbstractSendMessageProcessor``). Java consumers
    of 5.x do not trace a message without a region.
    """
    return region_properties(config, profile) | {CLUSTER: config.broker_cluster_name}


def added_text(config: BrokerConfig, profile: BrokerProfile) -> str:
    """Return the text of the added properties, with which a record's properties end."""
    end = PROPERTY_SEPARATOR if profile.ends_properties else ""
    return format_properties(added_properties(config, profile)) + end


def region_properties(config: BrokerConfig, profile: BrokerProfile) -> dict[str, str]:
    """Return the added properties that replies have, too; none before 5.0."""
    if not profile.stores_region:
        return {}
    return {MSG_REGION: config.region_id, TRACE_ON: "true" if config.trace_on else "false"}
