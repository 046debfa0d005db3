"""Payloads: what a test passes to ``Topic.send``, encoded as bodies, and the sharding keys of payloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rewindmq.protocol.message import Message
from rewindmq.testing.errors import KitError

# The name of a field, or a function that returns the key of a payload.
Key = str | Callable[[Any], object] | None


def body_of(payload: object) -> bytes:
    """Return a body: bytes as they are, text as UTF-8, any other value as JSON.

    Raises:
        KitError: the value has no JSON form.
    """
    if isinstance(payload, Message):
        return payload.body
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload)
    if isinstance(payload, str):
        return payload.encode()
    try:
        return msgspec.json.encode(payload)
    except (TypeError, ValueError) as error:
        raise KitError(f"a payload is bytes, text, a JSON value or a Message: {error}") from None


def message_of(topic: str, payload: object, tags: str | None, keys: str | None, delay_level: int) -> Message:
    """Return a payload as a message; a ``Message`` keeps its own tags, keys and delay.

    Raises:
        KitError: a ``Message`` of another topic, or a value without a JSON form.
    """
    if not isinstance(payload, Message):
        return Message(topic, body_of(payload), tags, keys, delay_level=delay_level)
    if payload.topic != topic:
        raise KitError(
            f"the message is for topic {payload.topic!r}; build it with the topic's name, {topic!r}"
        )
    return payload


def key_of(payload: object, key: Key) -> str | None:
    """Return the sharding key of a payload as text; None without ``key``.

    Raises:
        KitError: the payload has no such field.
    """
    if key is None:
        return None
    if callable(key):
        return str(key(payload))
    try:
        return str(payload[key] if isinstance(payload, Mapping) else getattr(payload, key))
    except (KeyError, AttributeError):
        raise KitError(
            f"key={key!r} names a field that the payload {payload!r} does not have;"
            " pass a function, key=lambda payload: ..., to compute the key"
        ) from None
