"""A server's settings while it runs, as lines of a property file: what 25 and 318 change, 26 and 319 tell.

RocketMQ 4.9.4 ``Configuration`` takes any key it knows, heeds some of them only after a restart, and rewrites
the file. Here only keys that count at once are taken, and the file stays what it is: a restart undoes the
change.
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
    config: msgspec.Struct, text: bytes, live_keys: Sequence[str], *, server: str, source: str
) -> None:
    """Take over ``key=value`` lines: all of them, or none.

    Args:
        config: may be frozen; its encoded names are RocketMQ's keys.
        live_keys: those that count at once.
        server: what runs, for remarks.
        source: where the lines come from, for remarks.

    Raises:
        RequestError: 1, no text, a key that is unknown or cannot be changed now, or a bad value.
    """
    if len(text) > _MAX_BYTES:
        raise _refusal(f"more than {_MAX_BYTES} bytes of configuration")
    try:
        entries = parse_properties_file(text.decode())
        loaded = convert_properties(type(config), entries, source)
    except (UnicodeDecodeError, ConfigError) as error:
        raise _refusal(f"string2Properties error: {error}") from None
    fixed = sorted({entry.key for entry in entries} - set(live_keys))
    if fixed or not entries:
        raise _refusal(
            f"{', '.join(fixed) or 'nothing'} cannot be changed while the {server} runs;"
            f" these can: {', '.join(live_keys)}"
        )
    for name, value in loaded.fields.items():
        # Frozen for everybody else: what reads a key once must not be changed behind its back.
        msgspec.structs.force_setattr(config, name, value)


def live_text(*parts: msgspec.Struct) -> bytes:
    """All keys of the parts that have a value, as lines of a property file; no parts within parts."""
    values: dict[str, object] = {}
    for part in parts:
        for field in msgspec.structs.fields(part):
            value = getattr(part, field.name)
            if value is not None and not isinstance(value, msgspec.Struct):
                values[field.encode_name] = value
    return format_properties_file(values).encode()


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
