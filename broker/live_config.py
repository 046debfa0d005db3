"""The part of the configuration that can change while the broker runs.

UPDATE_BROKER_CONFIG (25) changes it; GET_BROKER_CONFIG (26) returns it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.protocol.config.live_properties import change_live, live_text
from rewindmq.protocol.config.property_file import format_properties_file

_LIVE_KEYS: Final = (
    "allowRecallWhenBrokerNotWriteable",
    "autoCreateTopicEnable",
    "brokerPermission",
    "cloneGroupOffsetOfAllTopics",
    "emulatedBusy",
    "enableMixedMessageType",
    "enablePropertyFilter",
    "maxTransferBytesOnMessageInDisk",
    "maxTransferBytesOnMessageInMemory",
    "maxTransferCountOnMessageInDisk",
    "maxTransferCountOnMessageInMemory",
    "notifyConsumerIdsChangedEnable",
    "recallMessageEnable",
    "storeReplyMessageEnable",
)
# Keys of functions that RewindMQ does not have. ``mqadmin exportConfigs`` of 4.9 fails without them.
_OFF: Final[dict[str, object]] = {"filterServerNums": 0, "useTLS": False}


class LiveConfig:
    """Changes the configuration object that every part of the broker reads.

    Args:
        on_change: called after a change.
    """

    def __init__(self, config: BrokerConfig, on_change: Callable[[], None]) -> None:
        self._config = config
        self._on_change = on_change

    def update(self, text: bytes) -> None:
        """Apply ``key=value`` lines, see ``change_live``."""
        parts = (self._config, self._config.store)
        change_live(parts, text, _LIVE_KEYS, server="broker", source="updateBrokerConfig")
        self._on_change()

    def text(self) -> bytes:
        """Return all keys with their values, as lines of a property file."""
        # Always there, so that a preview knows what a reset will do.
        mode = {} if self._config.reset_mode else {"resetMode": self._config.default_reset_mode}
        return live_text(self._config, self._config.store) + format_properties_file(_OFF | mode).encode()
