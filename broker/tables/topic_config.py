"""The broker's topics, in ``config/topics.json`` (docs/spec/store.md 8.2, docs/spec/broker.md B.1)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.limits import MAX_TOPICS, check_room
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.config_table import ConfigTable, ignore_unsaved
from rewindmq.broker.tables.topic_attributes import is_compacted
from rewindmq.protocol.body.registration import TopicConfig, TopicConfigSerializeWrapper
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm
from rewindmq.protocol.names import (
    BENCHMARK_TOPIC,
    DEFAULT_TOPIC,
    OFFSET_MOVED_EVENT,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    TIMER_TOPIC,
    reply_topic,
)
from rewindmq.protocol.pop.topics import revive_topic
from rewindmq.protocol.profile import Profile

_log = logging.getLogger(__name__)

_PERM_TEMPLATE: Final = PERM_READ_WRITE | Perm.INHERIT
_SCHEDULE_QUEUES: Final = 18


def _ignore(topics: Collection[str]) -> None:
    """Tell nobody of changed topics."""


class TopicConfigManager(ConfigTable[TopicConfig]):
    """The broker's topics (RocketMQ 4.9.4 ``TopicConfigManager``).

    Args:
        on_change: called with the changed topics after each change, to register at the name servers; with
            none if all have changed.
        on_compacted: called with the topics of the compaction store, after the table is loaded and after each
            change.
    """

    def __init__(
        self,
        config: BrokerConfig,
        file: ConfigFile,
        now_ms: Callable[[], int],
        on_unsaved: Callable[[], None] = ignore_unsaved,
        *,
        on_change: Callable[[Collection[str]], None] = _ignore,
        on_compacted: Callable[[Collection[str]], None] = _ignore,
    ) -> None:
        built_in = {topic.topic_name: topic for topic in _built_in(config)}
        super().__init__(
            file,
            now_ms,
            key="topicConfigTable",
            entry=TopicConfig,
            built_in=built_in,
            on_unsaved=on_unsaved,
        )
        self._config = config
        self._on_change = on_change
        self._on_compacted = on_compacted
        self._built_in = frozenset(built_in)
        self._compacted: set[str] = set()

    def _on_replaced(self) -> None:
        self._compacted = {name for name, topic in self._entries.items() if is_compacted(topic)}
        self._on_compacted(self._compacted)

    def _on_put(self, name: str, entry: TopicConfig | None) -> None:
        is_in = entry is not None and is_compacted(entry)
        if is_in != (name in self._compacted):
            self._compacted ^= {name}
            self._on_compacted(self._compacted)

    def _check_room(self, count: int) -> None:
        check_room("topics", count, MAX_TOPICS)

    def find(self, topic: str) -> TopicConfig | None:
        """Return the topic's settings, which the caller must not change in place."""
        return self._entries.get(topic)

    @property
    def built_in(self) -> frozenset[str]:
        """Names of the topics that the broker creates for itself."""
        return self._built_in

    def is_built_in(self, topic: str) -> bool:
        """Return True if the broker creates the topic for itself; administrators may not change it."""
        return topic in self._built_in

    def plan_for_send(
        self, topic: str, default_topic: str, default_queue_nums: int, topic_sys_flag: int
    ) -> TopicConfig | None:
        """Return a new topic copied from the template that the producer names; None if that is not allowed.

        The topic has min(the requested number, the template's write queues) queues, at least 0, and the
        template's permission without INHERIT. Nothing is stored before ``update``.

        Raises:
            RequestError: SYSTEM_ERROR (1), there are too many topics.
        """
        template = self._entries.get(default_topic)
        # The file may still contain the default topic from an earlier start.
        is_off = default_topic == DEFAULT_TOPIC and not self._config.auto_create_topic_enable
        if template is None or is_off or not template.perm & Perm.INHERIT:
            _log.warning("topic %s is not created: no template %s to inherit from", topic, default_topic)
            return None
        self._check_room(len(self._entries))
        queue_nums = max(0, min(default_queue_nums, template.write_queue_nums))
        return TopicConfig(
            topic,
            read_queue_nums=queue_nums,
            write_queue_nums=queue_nums,
            perm=int(template.perm & ~Perm.INHERIT),
            topic_filter_type=template.topic_filter_type,
            topic_sys_flag=topic_sys_flag,
        )

    def plan(
        self, topic: str, queue_nums: int, perm: int = PERM_READ_WRITE, topic_sys_flag: int = 0
    ) -> TopicConfig:
        """Return a new retry or dead-letter topic; nothing is stored before ``update``.

        Raises:
            RequestError: SYSTEM_ERROR (1), there are too many topics.
        """
        self._check_room(len(self._entries))
        return TopicConfig(
            topic,
            read_queue_nums=queue_nums,
            write_queue_nums=queue_nums,
            perm=perm,
            topic_sys_flag=topic_sys_flag,
        )

    def ensure(self, topic: str, queue_nums: int, topic_sys_flag: int = 0) -> TopicConfig:
        """Return the retry topic of that name; create it if it does not exist."""
        known = self._entries.get(topic)
        if known is None:
            known = self.plan(topic, queue_nums, topic_sys_flag=topic_sys_flag)
            self.update(known)
        return known

    def update(self, topic: TopicConfig, *, announce: bool = True) -> None:
        """Create or replace a topic.

        Args:
            announce: False if the caller registers at the name servers.

        Raises:
            RequestError: SYSTEM_ERROR (1), the topic is new and there are too many; nothing has changed.
        """
        self._update(topic.topic_name, topic)
        if announce:
            self._on_change((topic.topic_name,))

    def update_all(self, topics: Mapping[str, TopicConfig], *, announce: bool = True) -> None:
        """Create or replace several topics, as ``update`` does; all of them or none."""
        self._update_all(topics)
        if announce:
            self._on_change(topics)

    def renew(self) -> None:
        """Renew the data version and register, because the broker's permission has changed."""
        self._put({})
        self._on_change(())

    def take_over(self, wrapper: TopicConfigSerializeWrapper) -> None:
        """Replace all topics by the master's, if its data version differs.

        Raises:
            RequestError: SYSTEM_ERROR (1), there are too many; nothing has changed.
        """
        self._take_over(wrapper.topic_config_table, wrapper.data_version)

    @property
    def names(self) -> Collection[str]:
        """The names of all topics."""
        return self._entries.keys()

    def mark_ordered(self, topics: Iterable[str]) -> None:
        """Set ``order`` on the topics listed in ORDER_TOPIC_CONFIG and clear it on the others."""
        ordered = set(topics)
        wrong = [topic for name, topic in self._entries.items() if topic.order != (name in ordered)]
        if wrong:
            self._put(
                {topic.topic_name: msgspec.structs.replace(topic, order=not topic.order) for topic in wrong}
            )

    def wrapper(self) -> TopicConfigSerializeWrapper:
        """Return all topics for registration; a limited permission of the broker replaces the topics' own."""
        permission = self._config.broker_permission
        topics = self._entries
        if permission & PERM_READ_WRITE != PERM_READ_WRITE:
            topics = {name: msgspec.structs.replace(topic, perm=permission) for name, topic in topics.items()}
        return TopicConfigSerializeWrapper(dict(topics), self.data_version)

    def table(self) -> TopicConfigSerializeWrapper:
        """Return all topics and the data version."""
        return TopicConfigSerializeWrapper(dict(self._entries), self.data_version)


def _built_in(config: BrokerConfig) -> Iterable[TopicConfig]:
    yield _topic(SELF_TEST_TOPIC, 1)
    if config.auto_create_topic_enable:
        yield _topic(DEFAULT_TOPIC, config.default_topic_queue_nums, _PERM_TEMPLATE)
    yield _topic(BENCHMARK_TOPIC, 1_024)
    cluster_perm = _PERM_TEMPLATE if config.cluster_topic_enable else int(Perm.INHERIT)
    yield _topic(config.broker_cluster_name, 16, cluster_perm)
    broker_perm = _PERM_TEMPLATE if config.broker_topic_enable else int(Perm.INHERIT)
    yield _topic(config.broker_name, 1, broker_perm)
    yield _topic(OFFSET_MOVED_EVENT, 1)
    yield _topic(SCHEDULE_TOPIC, _SCHEDULE_QUEUES)
    if config.trace_topic_enable:
        yield _topic(config.msg_trace_topic_name, 1)
    yield _topic(reply_topic(config.broker_cluster_name), 1)
    if config.profile.release is Profile.V53:
        yield _topic(revive_topic(config.broker_cluster_name), config.revive_queue_num)
        if config.store.timer_wheel_enable:
            yield _topic(TIMER_TOPIC, 1)


def _topic(name: str, queue_nums: int, perm: int = PERM_READ_WRITE) -> TopicConfig:
    return TopicConfig(name, read_queue_nums=queue_nums, write_queue_nums=queue_nums, perm=int(perm))
