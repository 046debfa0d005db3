"""What can be changed of a broker's configuration while it runs (25), and what it says it is (26).

RocketMQ 4.9.4 ``Configuration`` and ``AdminBrokerProcessor#updateBrokerConfig`` take any key they know, heed
some of them only after a restart, and rewrite the file. Here only keys that count at once are taken, and the
file stays what it is: a restart undoes the change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ConfigError, RequestError
from rewindmq.protocol.property_file import (
    convert_properties,
    format_properties_file,
    parse_properties_file,
)

_LIVE_KEYS: Final = (
    "autoCreateTopicEnable",
    "brokerPermission",
    "emulatedBusy",
    "enablePropertyFilter",
    "notifyConsumerIdsChangedEnable",
)
_MAX_BYTES: Final = 65_536


class LiveConfig:
    """The configuration that every part of the broker reads.

    Args:
        on_change: called after a change.
    """

    def __init__(self, config: BrokerConfig, on_change: Callable[[], None]) -> None:
        self._config = config
        self._on_change = on_change

    def update(self, text: bytes) -> None:
        """Take over ``key=value`` lines: all of them, or none.

        Raises:
            RequestError: 1, no text, a key that is unknown or cannot be changed now, or a bad value.
        """
        if len(text) > _MAX_BYTES:
            raise _refusal(f"more than {_MAX_BYTES} bytes of configuration")
        try:
            entries = parse_properties_file(text.decode())
            loaded = convert_properties(BrokerConfig, entries, "updateBrokerConfig")
        except (UnicodeDecodeError, ConfigError) as error:
            raise _refusal(f"string2Properties error: {error}") from None
        fixed = sorted({entry.key for entry in entries} - set(_LIVE_KEYS))
        if fixed or not entries:
            raise _refusal(
                f"{', '.join(fixed) or 'nothing'} cannot be changed while the broker runs;"
                f" these can: {', '.join(_LIVE_KEYS)}"
            )
        for name, value in loaded.fields.items():
            # Frozen for everybody else: what reads a key once must not be changed behind its back.
            msgspec.structs.force_setattr(self._config, name, value)
        self._on_change()

    def text(self) -> bytes:
        """All keys with their values, as lines of a property file."""
        values: dict[str, object] = {}
        for part in (self._config, self._config.store):
            for field in msgspec.structs.fields(part):
                value = getattr(part, field.name)
                if value is not None and not isinstance(value, StoreConfig):
                    values[field.encode_name] = value
        return format_properties_file(values).encode()


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
