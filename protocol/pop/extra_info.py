"""The handle of a popped message, property ``POP_CK`` (RocketMQ 5.5.1 ``ExtraInfoUtil``).

``startOffset popTime invisibleTime reviveQid topicType brokerName queueId [queueOffset [commitLogOffset]]``:
a client returns it to acknowledge the message or to change its invisible time.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.pop.topics import real_topic, topic_type

_SEPARATOR: Final = " "
_INT64: Final = r"([+-]?[0-9]{1,19})"
_INT32: Final = r"([+-]?[0-9]{1,10})"
_HANDLE: Final = re.compile(
    f"{_INT64} {_INT64} {_INT64} {_INT32} ([^ ]*) ([^ ]+)(?: {_INT32}(?: {_INT64}(?: (.*))?)?)? *", re.DOTALL
)
_LARGEST_INT64: Final = 2**63 - 1
_LARGEST_INT32: Final = 2**31 - 1
# ``ExtraInfoUtil``'s getters of the fields, in their order.
_GETTERS: Final = (
    "getCkQueueOffset",
    "getPopTime",
    "getInvisibleTime",
    "getReviveQid",
    "getRetry",
    "getBrokerName",
    "getQueueId",
    "getQueueOffset",
)
# The broker's name is the last field that a broker needs.
_LEAST_FIELDS: Final = 6
_REVIVE_FIELD: Final = 4


class ExtraInfoError(RequestError):
    """A handle with too few fields, or with a text where a number belongs. Its code is SYSTEM_ERROR (1)."""

    def __init__(self, remark: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, remark)


class ExtraInfo(NamedTuple):
    """The fields of a handle.

    Attributes:
        start_offset: the queue offset at which the POP began; it names the checkpoint.
        pop_time: ms, when the message was popped.
        invisible_time: ms from ``pop_time``.
        revive_queue_id: the queue of the checkpoint in the revive topic.
        topic_type: ``0``, ``1`` or ``2``: ``topics.topic_type``.
        queue_id, offset: the message's queue and queue offset; None in a short handle.
        commit_log_offset: what follows them. Brokers ignore it; after a change of the invisible time it
            begins with ``offset`` once more.
    """

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue_id: int
    topic_type: str
    broker_name: str
    queue_id: int | None = None
    offset: int | None = None
    commit_log_offset: str | None = None

    def real_topic(self, topic: str, group: str) -> str:
        """Return the topic in which the message is stored: ``topic`` for an unknown topic type."""
        return real_topic(topic, group, self.topic_type) if self.topic_type in ("1", "2") else topic

    def text(self) -> str:
        """Return the handle."""
        return _SEPARATOR.join(str(field) for field in self if field is not None)


def parse_extra_info(text: str, *, is_change: bool = False) -> ExtraInfo:
    """Parse a handle of at least six fields.

    Args:
        is_change: of a change of the invisible time: RocketMQ reads the revive queue first.

    Raises:
        ExtraInfoError: a field is missing, or is no number where it must be one.
    """
    found = _HANDLE.fullmatch(text)
    if found is not None:
        start, popped, invisible, revive, kind, broker, queue, offset, rest = found.groups()
        info = ExtraInfo(
            int(start),
            int(popped),
            int(invisible),
            int(revive),
            kind,
            broker,
            None if queue is None else int(queue),
            None if offset is None else int(offset),
            rest,
        )
        if _is_in_range(info):
            return info
    raise ExtraInfoError(_fault(text, _REVIVE_FIELD if is_change else _LEAST_FIELDS))


def build_extra_info(
    start_offset: int,
    pop_time: int,
    invisible_time: int,
    revive_queue_id: int,
    topic: str,
    broker_name: str,
    queue_id: int,
    offset: int | None = None,
) -> str:
    """Return the handle of a message of this (real) topic."""
    kind = topic_type(topic)
    handle = f"{start_offset} {pop_time} {invisible_time} {revive_queue_id} {kind} {broker_name} {queue_id}"
    return handle if offset is None else f"{handle} {offset}"


def _is_in_range(info: ExtraInfo) -> bool:
    return (
        -_LARGEST_INT64 <= info.start_offset <= _LARGEST_INT64
        and -_LARGEST_INT64 <= info.pop_time <= _LARGEST_INT64
        and -_LARGEST_INT64 <= info.invisible_time <= _LARGEST_INT64
        and -_LARGEST_INT32 <= info.revive_queue_id <= _LARGEST_INT32
        and (info.queue_id is None or -_LARGEST_INT32 <= info.queue_id <= _LARGEST_INT32)
        and (info.offset is None or -_LARGEST_INT64 <= info.offset <= _LARGEST_INT64)
    )


def _fault(text: str, first: int) -> str:
    """Return what is wrong, in the words of the Java exception; field number ``first`` is read first."""
    # Java's split drops empty fields at the end.
    fields = text.rstrip(_SEPARATOR).split(_SEPARATOR)
    if first <= len(fields) < _LEAST_FIELDS and not _is_number(fields[first - 1], _LARGEST_INT32):
        return f'java.lang.NumberFormatException: For input string: "{fields[first - 1][:100]}"'
    if len(fields) < _LEAST_FIELDS:
        getter = _GETTERS[(first if len(fields) < first else _LEAST_FIELDS) - 1]
        return f"java.lang.IllegalArgumentException: {getter} fail, extraInfoStrs length {len(fields)}"
    for place in (3, 0, 1, 2, 6, 7):
        largest = _LARGEST_INT32 if place in (3, 6) else _LARGEST_INT64
        if place < len(fields) and not _is_number(fields[place], largest):
            return f'java.lang.NumberFormatException: For input string: "{fields[place][:100]}"'
    return f"the handle is malformed: {text[:100]!r}"


def _is_number(text: str, largest: int) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,19}", text) is not None and -largest <= int(text) <= largest
