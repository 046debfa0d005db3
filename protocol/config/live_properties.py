"""Reads and changes a server's settings while it runs, as lines of a property file.

UPDATE_BROKER_CONFIG (25) and UPDATE_NAMESRV_CONFIG (318) change them; GET_BROKER_CONFIG (26) and
GET_NAMESRV_CONFIG (319) read them. RocketMQ 4.9.4 ``Configuration`` accepts any key it knows, applies some
only after a restart, and rewrites the file. RewindMQ accepts only keys that take effect at once, and does not
write the file: a restart undoes the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.config.property_file import (
    convert_properties,
    format_properties_file,
    parse_properties_file,
)
from rewindmq.protocol.errors import ConfigError, RequestError

_MAX_BYTES: Final = 65_536


def change_live(
    parts: Sequence[msgspec.Struct], text: bytes, live_keys: Sequence[str], *, server: str, source: str
) -> None:
    """Apply ``key=value`` lines: all of them, or none.

    Args:
        parts: the structs that have the keys; may be frozen. Their encoded names are RocketMQ's keys.
        live_keys: the keys that take effect at once.
        server: the kind of server, for remarks.
        source: the origin of the lines, for remarks.

    Raises:
        RequestError: SYSTEM_ERROR (1), not text, a key that is unknown or cannot be changed now, or a bad
            value.
    """
    if len(text) > _MAX_BYTES:
        raise _refusal(f"more than {_MAX_BYTES} bytes of configuration")
    try:
        entries = parse_properties_file(text.decode())
        changes = [convert_properties(type(part), entries, source).fields for part in parts]
    except (UnicodeDecodeError, ConfigError) as error:
        raise _refusal(f"string2Properties error: {error}") from None
    fixed = sorted({entry.key for entry in entries} - set(live_keys))
    if fixed or not entries:
        raise _refusal(
            f"{', '.join(fixed) or 'nothing'} cannot be changed while the {server} runs;"
            f" these can: {', '.join(live_keys)}"
        )
    for part, fields in zip(parts, changes, strict=True):
        for name, value in fields.items():
            # The config is frozen for all other code, because some code copies keys that are not live.
            msgspec.structs.force_setattr(part, name, value)


def live_text(*parts: msgspec.Struct) -> bytes:
    """Return the set keys of the parts as lines of a property file; nested structs are not included."""
    values: dict[str, object] = {}
    for part in parts:
        for field in msgspec.structs.fields(part):
            value = getattr(part, field.name)
            if value is not None and not isinstance(value, msgspec.Struct):
                values[field.encode_name] = value
    return format_properties_file(values).encode()


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
