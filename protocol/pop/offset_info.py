"""The texts of a POP's response that say where its messages come from (RocketMQ 5.5.1 ``ExtraInfoUtil``).

Each text has one entry for each queue, ``topicType queueId value``, with ``;`` between them. The value of
``startOffsetInfo`` is the offset at which the POP began, that of ``msgOffsetInfo`` the offsets of the
messages with ``,`` between them, and that of ``orderCountInfo`` the number of earlier attempts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from rewindmq.protocol.errors import RewindMQError

BETWEEN_ENTRIES: Final = ";"
_BETWEEN_FIELDS: Final = " "
_BETWEEN_OFFSETS: Final = ","
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_LARGEST: Final = 2**63 - 1

# The topic type and the queue id.
QueueKey = tuple[str, int]


class OffsetInfoError(RewindMQError):
    """A text of a POP's response that cannot be read, or that names a queue twice."""


def start_offset_entry(kind: str, queue_id: int, start_offset: int) -> str:
    """Return the entry of one queue in ``startOffsetInfo``."""
    return f"{kind} {queue_id} {start_offset}"


def msg_offset_entry(kind: str, queue_id: int, offsets: Iterable[int]) -> str:
    """Return the entry of one queue in ``msgOffsetInfo``."""
    return f"{kind} {queue_id} {_BETWEEN_OFFSETS.join(map(str, offsets))}"


def order_count_entry(kind: str, key: str, count: int) -> str:
    """Return an entry of ``orderCountInfo``; the key is a queue id or an ``offset_key``."""
    return f"{kind} {key} {count}"


def offset_key(queue_id: int, offset: int) -> str:
    """Return the key of one message in ``orderCountInfo``."""
    return f"qo{queue_id}%{offset}"


def parse_start_offset_info(text: str | None) -> dict[QueueKey, int]:
    """Return the offset at which the POP of each queue began; an empty map for None or an empty text.

    Raises:
        OffsetInfoError: the text cannot be read.
    """
    return {(kind, _int(queue, text)): _int(value, text) for kind, queue, value in _entries(text)}


def parse_msg_offset_info(text: str | None) -> dict[QueueKey, list[int]]:
    """Return the offsets of the messages of each queue; an empty map for None or an empty text.

    Raises:
        OffsetInfoError: the text cannot be read.
    """
    return {
        (kind, _int(queue, text)): [_int(offset, text) for offset in value.split(_BETWEEN_OFFSETS)]
        for kind, queue, value in _entries(text)
    }


def parse_order_count_info(text: str | None) -> dict[tuple[str, str], int]:
    """Return the attempts by topic type and key, which is a queue id or an ``offset_key``.

    Raises:
        OffsetInfoError: the text cannot be read.
    """
    return {(kind, key): _int(value, text) for kind, key, value in _entries(text)}


def _entries(text: str | None) -> Iterator[tuple[str, str, str]]:
    seen: set[tuple[str, str]] = set()
    for entry in text.split(BETWEEN_ENTRIES) if text else ():
        fields = entry.split(_BETWEEN_FIELDS)
        if len(fields) != 3:
            raise OffsetInfoError(f"an entry has {len(fields)} fields, not 3: {_quoted(text)}")
        kind, key, value = fields
        if (kind, key) in seen:
            raise OffsetInfoError(f"a queue is named twice: {_quoted(text)}")
        seen.add((kind, key))
        yield kind, key, value


def _int(number: str, text: str | None) -> int:
    if _NUMBER.fullmatch(number) is None or abs(int(number)) > _LARGEST:
        raise OffsetInfoError(f"{number[:30]!r} is no number: {_quoted(text)}")
    return int(number)


def _quoted(text: str | None) -> str:
    return repr((text or "")[:200])
