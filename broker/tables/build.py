"""Builds the tables of topics, groups and request modes, and loads them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.flush import TableFlush
from rewindmq.broker.tables.message_request_mode import MessageRequestModeManager
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of configurations.

    Attributes:
        flush: writes them.
    """

    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    request_modes: MessageRequestModeManager
    flush: TableFlush


def build(
    runtime: Runtime,
    config: BrokerConfig,
    disk: Disk,
    store: MessageStore,
    on_change: Callable[[Collection[str]], None],
) -> Tables:
    """Return the tables, loaded.

    Args:
        store: learns which topics are compacted.
        on_change: see ``TopicConfigManager``.

    Raises:
        StoreError: if a file cannot be read.
    """

    def save() -> None:
        flush.begin()

    def file(name: str) -> ConfigFile:
        return ConfigFile(config.table_folder / name, disk)

    now_ms = runtime.clock.now_ms
    topics = TopicConfigManager(
        config,
        file("topics.json"),
        now_ms,
        save,
        on_change=on_change,
        on_compacted=store.set_compaction_topics,
    )
    groups = SubscriptionGroupManager(
        file("subscriptionGroup.json"), now_ms, save, auto_create=config.auto_create_subscription_group
    )
    request_modes = MessageRequestModeManager(file("messageRequestMode.json"), now_ms, save)
    flush = TableFlush(runtime.workers, (topics, groups, request_modes))
    for table in (topics, groups, request_modes):
        table.load()
    return Tables(topics, groups, request_modes, flush)
