"""The broker's consumer groups, in ``config/subscriptionGroup.json`` (docs/spec/store.md 8.3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from rewindmq.broker.limits import MAX_GROUPS, check_room
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.config_table import ConfigTable, ignore_unsaved
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
    """The consumer groups; a group's first request creates it (4.9.4 ``SubscriptionGroupManager``)."""

    def __init__(
        self,
        file: ConfigFile,
        now_ms: Callable[[], int],
        on_unsaved: Callable[[], None] = ignore_unsaved,
        *,
        auto_create: bool,
    ) -> None:
        super().__init__(
            file,
            now_ms,
            key="subscriptionGroupTable",
            entry=SubscriptionGroupConfig,
            built_in={name: SubscriptionGroupConfig(name) for name in _BUILT_IN},
            on_unsaved=on_unsaved,
        )
        self._auto_create = auto_create

    def _check_room(self, count: int) -> None:
        check_room("consumer groups", count, MAX_GROUPS)

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """Return the group's settings; create the group if that is allowed.

        Returns:
            None for an unknown group if creation is off, and for an invalid name.

        Raises:
            RequestError: SYSTEM_ERROR (1), the group is new and there are too many.
        """
        found = self._entries.get(group)
        if found is not None or not self.may_create(group):
            return found
        created = SubscriptionGroupConfig(group)
        self._update(group, created)
        _log.info("consumer group %s created", group)
        return created

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """Return the group's settings; never create the group."""
        return self._entries.get(group)

    def update(self, group: SubscriptionGroupConfig) -> None:
        """Create or replace a group.

        Raises:
            RequestError: SYSTEM_ERROR (1), the group is new and there are too many; nothing has changed.
        """
        self._update(group.group_name, group)

    def update_all(self, groups: Mapping[str, SubscriptionGroupConfig]) -> None:
        """Create or replace several groups, as ``update`` does; all of them or none."""
        self._update_all(groups)

    def may_create(self, group: str) -> bool:
        """Return True if ``find`` would create an unknown group of this name."""
        return (self._auto_create or group.startswith(SYSTEM_GROUP_PREFIX)) and is_valid_group(group)

    def take_over(self, wrapper: SubscriptionGroupWrapper) -> None:
        """Replace all groups by the master's, if its data version differs.

        Raises:
            RequestError: SYSTEM_ERROR (1), there are too many; nothing has changed.
        """
        self._take_over(wrapper.subscription_group_table, wrapper.data_version)

    def table(self) -> SubscriptionGroupWrapper:
        """Return all groups and the data version."""
        return SubscriptionGroupWrapper(dict(self._entries), self.data_version)
