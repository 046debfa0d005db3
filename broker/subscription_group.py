"""The broker's consumer groups, in ``config/subscriptionGroup.json`` (docs/spec/store.md 8.3)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from rewindmq.broker.limits import MAX_GROUPS, check_room
from rewindmq.broker.saved_table import save_or_refuse
from rewindmq.broker.store.config_file import ConfigFile
from rewindmq.broker.store.kept_members import KeptMembers
from rewindmq.protocol.body.group import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.body.registration import DataVersion
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


class SubscriptionGroupManager:
    """RocketMQ 4.9.4 ``SubscriptionGroupManager``; a group's first contact creates it."""

    def __init__(self, file: ConfigFile, now_ms: Callable[[], int], *, auto_create: bool) -> None:
        self._file = file
        self._now_ms = now_ms
        self._auto_create = auto_create
        self._groups = {name: SubscriptionGroupConfig(name) for name in _BUILT_IN}
        self._kept = KeptMembers("subscriptionGroupTable", SubscriptionGroupConfig)
        self.data_version = DataVersion(timestamp=now_ms())

    def load(self) -> None:
        """Lay the file over the built-in groups.

        Raises:
            StoreError: neither the file nor its backup can be read.
        """
        self._file.load(self._read)

    def _read(self, content: Any) -> None:
        table = content.get("subscriptionGroupTable") or {}
        groups = msgspec.convert(table, dict[str, SubscriptionGroupConfig], strict=False)
        version = content.get("dataVersion")
        if version:
            self.data_version = msgspec.convert(version, DataVersion, strict=False)
        self._kept.note(content)
        self._groups.update(groups)

    def find(self, group: str) -> SubscriptionGroupConfig | None:
        """The group's settings, creating it where that is allowed.

        None for an unknown group when creation is off, and for a name outside RocketMQ's rules.

        Raises:
            RequestError: 1, the group is new and there are too many, or the file cannot be written.
        """
        found = self._groups.get(group)
        if found is not None or not self.may_create(group):
            return found
        check_room("consumer groups", len(self._groups), MAX_GROUPS)
        created = SubscriptionGroupConfig(group)
        self._replace_all({**self._groups, group: created})
        _log.info("consumer group %s created", group)
        return created

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """The group's settings; creates nothing."""
        return self._groups.get(group)

    def update(self, group: SubscriptionGroupConfig) -> None:
        """Create or replace a group.

        Raises:
            RequestError: 1, the group is new and there are too many, or the file cannot be written; nothing
                has changed.
        """
        if group.group_name not in self._groups:
            check_room("consumer groups", len(self._groups), MAX_GROUPS)
        self._replace_all({**self._groups, group.group_name: group})

    def delete(self, group: str) -> bool:
        """Forget a group's settings; False when there was none.

        Raises:
            RequestError: 1, the file cannot be written; nothing has changed.
        """
        if group not in self._groups:
            return False
        self._replace_all({name: config for name, config in self._groups.items() if name != group})
        self._kept.drop(group)
        return True

    def may_create(self, group: str) -> bool:
        """Whether ``find`` would create an unknown group of this name."""
        return (self._auto_create or group.startswith(SYSTEM_GROUP_PREFIX)) and is_valid_group(group)

    def take_over(self, wrapper: SubscriptionGroupWrapper) -> None:
        """Have the groups of a master and nothing else, if its version is another.

        Raises:
            RequestError: 1, there are too many, or the file cannot be written; nothing has changed.
        """
        if wrapper.data_version != self.data_version:
            check_room("consumer groups", len(wrapper.subscription_group_table) - 1, MAX_GROUPS)
            self._replace_all(dict(wrapper.subscription_group_table), wrapper.data_version)
            self._kept.forget()

    def table(self) -> SubscriptionGroupWrapper:
        """All groups as they are."""
        return SubscriptionGroupWrapper(dict(self._groups), self.data_version)

    def _replace_all(
        self, groups: dict[str, SubscriptionGroupConfig], version: DataVersion | None = None
    ) -> None:
        is_own = version is None
        if version is None:
            version = DataVersion(timestamp=self._now_ms(), counter=self.data_version.counter + 1)
        content = {
            "dataVersion": {"counter": version.counter, "timestamp": version.timestamp},
            "subscriptionGroupTable": {name: msgspec.to_builtins(group) for name, group in groups.items()},
        }
        # What was kept is not a master's.
        save_or_refuse(self._file, self._kept.added_to(content) if is_own else content)
        self._groups = groups
        self.data_version = version
