"""Attributes of topics, and their changes by UPDATE_AND_CREATE_TOPIC (17).

5.3.3 ``TopicAttributes`` and ``AttributeUtil#alterCurrentAttributes``, with the remarks of the latter.
``message.type`` is stored and returned only: in RocketMQ it is the proxy that compares it with a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.broker.store.layout.compaction import CLEANUP_POLICY, COMPACTION
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.topic_attributes import ADD, REMOVE, parse_attributes

MESSAGE_TYPE: Final = "message.type"
MIXED: Final = "MIXED"
_QUEUE_TYPE: Final = "queue.type"
_BATCH_QUEUE: Final = "BatchCQ"
_RESERVE_TIME: Final = "reserve.time"
# Name to allowed values, in the order in which RocketMQ's remark lists them.
_ALLOWED: Final = MappingProxyType(
    {
        CLEANUP_POLICY: ("DELETE", COMPACTION),
        _QUEUE_TYPE: ("SimpleCQ", _BATCH_QUEUE),
        MESSAGE_TYPE: ("UNSPECIFIED", "TRANSACTION", "FIFO", MIXED, "DELAY", "NORMAL"),
    }
)
# Attributes that may change after the topic was created.
_CHANGEABLE: Final = frozenset((MESSAGE_TYPE, _RESERVE_TIME))
_KNOWN: Final = frozenset((*_ALLOWED, _RESERVE_TIME))
_LARGEST_LONG: Final = 2**63 - 1
_LONG: Final = re.compile(r"[+-]?[0-9]{1,30}")


def altered_attributes(known: TopicConfig | None, changes: Mapping[str, str]) -> dict[str, str] | None:
    """Return a topic's attributes after a request.

    Args:
        known: the topic before; None if the request creates it.
        changes: value by signed name, from ``parse_attributes``.

    Raises:
        RequestError: SYSTEM_ERROR (1), the broker does not support the attribute or the value, or the
            attribute cannot be changed.
    """
    attributes = dict((known.attributes if known is not None else None) or {})
    _check_names(attributes if known is not None else None, changes)
    for signed, value in changes.items():
        sign, name = signed[0], signed[1:]
        if name not in _KNOWN:
            raise _refusal(f"unsupported key: {name}")
        if known is not None and name not in _CHANGEABLE:
            raise _refusal(f"attempt to update an unchangeable attribute. key: {name}")
        if sign == ADD:
            _check_value(name, value)
            attributes[name] = value
        else:
            del attributes[name]
    return attributes or None


def attributes_before_5(text: str) -> dict[str, str]:
    """Return the changes that a broker of 4.x applies: it ignores every attribute except ``cleanup.policy``.

    RocketMQ 4.x ignores that, too; compaction topics exist under every profile of RewindMQ.

    Raises:
        RequestError: SYSTEM_ERROR (1), ``cleanup.policy`` is malformed.
    """
    pieces = (
        piece for piece in text.split(",") if piece.partition("=")[0].lstrip(ADD + REMOVE) == CLEANUP_POLICY
    )
    return parse_attributes(",".join(pieces))


def is_compacted(topic: TopicConfig) -> bool:
    """Return True if the compaction store serves the topic: it keeps the newest message of each key."""
    return (topic.attributes or {}).get(CLEANUP_POLICY) == COMPACTION


def check_queue_type(topic: TopicConfig) -> None:
    """Raise RequestError with SYSTEM_ERROR (1) if the topic has queues of batches (5.x ``BatchCQ``).

    A topics.json of RocketMQ, or a master, may contain such a topic. Its queues count the messages inside a
    batch, so other queues would have wrong offsets.
    """
    if topic.attributes is not None and topic.attributes.get(_QUEUE_TYPE) == _BATCH_QUEUE:
        raise _refusal(
            f"topic[{topic.topic_name}] has {_QUEUE_TYPE}={_BATCH_QUEUE}, which RewindMQ does not support"
        )


def _check_names(present: Mapping[str, str] | None, changes: Mapping[str, str]) -> None:
    """Check all names before any value, as RocketMQ does; ``present`` is None for a new topic."""
    names: set[str] = set()
    for signed in changes:
        sign, name = signed[:1], signed[1:]
        if not name or ADD in name or REMOVE in name:
            raise _refusal("kv string format wrong.")
        if name in names:
            raise _refusal(f"alter duplication key. key: {name}")
        names.add(name)
        if present is None and sign != ADD:
            raise _refusal(f"only add attribute is supported while creating topic. key: {name}")
        if sign not in (ADD, REMOVE):
            raise _refusal(f"wrong format key: {name}")
        if present is not None and sign == REMOVE and name not in present:
            raise _refusal(f"attempt to delete a nonexistent key: {name}")


def _check_value(name: str, value: str) -> None:
    if name == _RESERVE_TIME:
        if not _LONG.fullmatch(value) or not -_LARGEST_LONG - 1 <= int(value) <= _LARGEST_LONG:
            raise _refusal(f'For input string: "{value}"')
        if int(value) < -1:
            raise _refusal(f"value is not in range(-1, {_LARGEST_LONG})")
    elif value not in _ALLOWED[name]:
        raise _refusal(f"value is not in set: [{', '.join(_ALLOWED[name])}]")
    elif value == _BATCH_QUEUE:
        raise _refusal(f"{_QUEUE_TYPE}={_BATCH_QUEUE} is not supported by RewindMQ: use SimpleCQ")


def _refusal(remark: str) -> RequestError:
    return RequestError(ResponseCode.SYSTEM_ERROR, remark)
