"""Attributes of topics, and their changes by UPDATE_AND_CREATE_TOPIC (17); 5.3.3 TopicAttributes."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from rewindmq.broker.store.layout.compaction import CLEANUP_POLICY, COMPACTION
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.topic_attributes import ADD, parse_attributes

# Name to allowed values. No attribute can change once the topic exists.
_ALLOWED: Final = MappingProxyType({CLEANUP_POLICY: ("DELETE", COMPACTION)})


def altered_attributes(known: TopicConfig | None, text: str | None) -> dict[str, str] | None:
    """Return a topic's attributes after a request.

    Args:
        known: the topic before; None if the request creates it.
        text: the request's attributes, ``+name=value`` and ``-name`` separated by commas.

    Raises:
        RequestError: SYSTEM_ERROR (1), the broker does not support the attribute or the value, or the
            attribute cannot be changed.
    """
    attributes = dict((known.attributes if known is not None else None) or {})
    for change, value in parse_attributes(text or "").items():
        name = change[1:]
        if name not in _ALLOWED:
            raise _refusal(f"unsupported key: {name}")
        if known is not None and attributes.get(name, _ALLOWED[name][0]) != (value or _ALLOWED[name][0]):
            raise _refusal(f"attempt to update an unchangeable attribute. key: {name}")
        if change[0] != ADD:
            if known is None:
                raise _refusal(f"only add attribute is supported while creating topic. key: {change}")
            attributes.pop(name, None)
        elif value not in _ALLOWED[name]:
            raise _refusal(f"value is not in set: {', '.join(_ALLOWED[name])}")
        else:
            attributes[name] = value
    return attributes or None


def is_compacted(topic: TopicConfig) -> bool:
    """Return True if the compaction store serves the topic: it keeps the newest message of each key."""
    return (topic.attributes or {}).get(CLEANUP_POLICY) == COMPACTION


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
