"""Builds what a broker does by itself: registration, retention, flushes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewindmq.broker.background.flush import BackgroundFlush
from rewindmq.broker.background.name_server import BrokerIdentity
from rewindmq.broker.background.registration import OnMaster, RegistrationService
from rewindmq.broker.background.retention import Retention
from rewindmq.broker.background.schedule import BackgroundService
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Background:
    """The periodic work.

    Attributes:
        services: those with a schedule, ``retention`` among them; closed in reverse order.
    """

    registration: RegistrationService
    retention: Retention
    flush: BackgroundFlush
    services: tuple[BackgroundService, ...]


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    store: MessageStore,
    client: RemotingClient,
    topics: TopicConfigManager,
    address: str,
    ha_port: int,
    on_master: OnMaster | None,
    services: Sequence[BackgroundService],
) -> Background:
    """Return the services; none has begun.

    Args:
        client: sends to the name servers.
        address: the registered one, ``host:port``.
        ha_port: 0 at a slave.
        on_master: see ``RegistrationService``.
        services: of other packages.
    """
    host, _, port = address.rpartition(":")
    identity = BrokerIdentity(
        config.broker_cluster_name,
        config.broker_name,
        config.broker_id,
        address,
        # A slave does not listen on its HA port, but RocketMQ's slaves register one, too.
        f"{host}:{ha_port or config.ha_listen_port or port}",
    )
    registration = RegistrationService(
        client,
        runtime.timers,
        config.namesrv_addresses,
        identity,
        topics.wrapper,
        topics.mark_ordered,
        period_ms=config.register_name_server_period,
        timeout_seconds=config.register_broker_timeout_mills / 1_000,
        sends_changes=profile.registers_changes,
        on_master=on_master,
    )
    retention = Retention(runtime, config, store, ends_idle=profile.exhausted_queue_ends)
    flush = BackgroundFlush(runtime.workers, store)
    return Background(registration, retention, flush, (retention, *services))
