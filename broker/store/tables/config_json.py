"""JSON as RocketMQ writes its configuration files: fastjson's pretty format (docs/spec/store.md 8.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.message_queue import MessageQueue

_ENCODE: Final = msgspec.json.Encoder().encode
_BARE: Final = (str, int, float)


def format_config(value: Any) -> str:
    """Return JSON with tabs, no space after colons, no final newline, and integer keys bare on one line.

    Args:
        value: mappings (keys str, int or ``MessageQueue``), sequences, str, int, float, bool. Fields that are
            None are left out, as fastjson does.
    """
    return _text(value, "\n\t")


def _text(value: Any, line: str) -> str:
    # The commonest types come first, because every change writes a whole table.
    if isinstance(value, _BARE):
        return _ENCODE(value).decode()
    if isinstance(value, Mapping):
        inner = line + "\t"
        members = [
            f"{_key(key, line)}:{_text(member, inner)}" for key, member in value.items() if member is not None
        ]
        return "{" + ",".join(members) + (line[:-1] if members else "") + "}"
    if isinstance(value, Sequence):
        items = [line + _text(item, line + "\t") for item in value]
        return "[" + ",".join(items) + (line[:-1] if items else "") + "]"
    return _ENCODE(value).decode()


def _key(key: Any, line: str) -> str:
    if isinstance(key, str):
        return line + _ENCODE(key).decode()
    if isinstance(key, int):
        return str(key)
    assert isinstance(key, MessageQueue), "nothing else is read as a key"
    return line + fastjson.dumps({"brokerName": key.broker_name, "queueId": key.queue_id, "topic": key.topic})
