"""What can be changed of a broker's configuration while it runs (25), and what it says it is (26)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rewindmq.broker.config import BrokerConfig
from rewindmq.protocol.config.live_properties import change_live, live_text

_LIVE_KEYS: Final = (
    "autoCreateTopicEnable",
    "brokerPermission",
    "cloneGroupOffsetOfAllTopics",
    "emulatedBusy",
    "enablePropertyFilter",
    "notifyConsumerIdsChangedEnable",
)


class LiveConfig:
    """The configuration that every part of the broker reads.

    Args:
        on_change: called after a change.
    """

    def __init__(self, config: BrokerConfig, on_change: Callable[[], None]) -> None:
        self._config = config
        self._on_change = on_change

    def update(self, text: bytes) -> None:
        """Take over ``key=value`` lines, see ``change_live``."""
        change_live(self._config, text, _LIVE_KEYS, server="broker", source="updateBrokerConfig")
        self._on_change()

    def text(self) -> bytes:
        """All keys with their values, as lines of a property file."""
        return live_text(self._config, self._config.store)
