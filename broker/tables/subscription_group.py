"""The broker's consumer groups, in ``config/subscriptionGroup.json`` (docs/spec/store.md 8.3)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rewindmq.broker.limits import MAX_GROUPS, check_room
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.config_table import ConfigTable
from rewindmq.protocol.body.group import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.names import SYSTEM_GROUP_PREFIX, is_valid_group

_log = logging.getLogger(__name__)

_BUILT_IN: Final = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)


class SubscriptionGroupManager(ConfigTable[SubscriptionGroupConfig]):
    """RocketMQ 4.9.4 ``SubscriptionGroupManager``; a group's first contact creates it."""

    def __init__(self, file: ConfigFile, now_ms: Callable[[], int], *, auto_create: bool) -> None:
        built_in = {name: SubscriptionGroupConfig(name) for name in _BUILT_IN}
        super().__init__(
            file, now_ms, key="subscriptionGroupTable", entry=SubscriptionGroupConfig, built_in=built_in
        )
        self._auto_create = auto_create

    def _check_room(self, count: int) -> None:
        check_room("consumer groups", count, MAX_GROUPS)

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """The group's settings, creating it where that is allowed.

        None for an unknown group when creation is off, and for a name outside RocketMQ's rules.

        Raises:
            RequestError: 1, the group is new and there are too many.
        """
        found = self._entries.get(group)
        if found is not None or not self.may_create(group):
            return found
        created = SubscriptionGroupConfig(group)
        self._update(group, created)
        _log.info("consumer group %s created", group)
        return created

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """The group's settings; creates nothing."""
        return self._entries.get(group)

    def update(self, group: SubscriptionGroupConfig) -> None:
        """Create or replace a group.

        Raises:
            RequestError: 1, the group is new and there are too many; nothing has changed.
        """
        self._update(group.group_name, group)

    def may_create(self, group: str) -> bool:
        """Whether ``find`` would create an unknown group of this name."""
        return (self._auto_create or group.startswith(SYSTEM_GROUP_PREFIX)) and is_valid_group(group)

    def take_over(self, wrapper: SubscriptionGroupWrapper) -> None:
        """Have the groups of a master and nothing else, if its version is another.

        Raises:
            RequestError: 1, there are too many; nothing has changed.
        """
        self._take_over(wrapper.subscription_group_table, wrapper.data_version)

    def table(self) -> SubscriptionGroupWrapper:
        """All groups as they are."""
        return SubscriptionGroupWrapper(dict(self._entries), self.data_version)
