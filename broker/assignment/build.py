"""Builds the broker's knowledge of routes. ``TopicRouteInfoManager`` is its facade."""

from __future__ import annotations

from rewindmq.broker.assignment.topic_routes import TopicRouteInfoManager
from rewindmq.broker.config import BrokerConfig
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime


def build(runtime: Runtime, config: BrokerConfig, client: RemotingClient) -> TopicRouteInfoManager:
    """Return the routes, none known; ``client`` asks the name servers."""
    poll_seconds = config.load_balance_poll_name_server_interval / 1_000
    return TopicRouteInfoManager(client, runtime, config.namesrv_addresses, poll_seconds)
