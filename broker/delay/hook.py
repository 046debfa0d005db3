"""Put-message hook for delay levels: redirects a delayed message to the schedule topic.

Source: RocketMQ 4.9.4 ``CommitLog#asyncPutMessage``; 5.3.3 ``HookUtils#transformDelayLevelMessage``.
Changed: a level that is not a number is refused with MESSAGE_ILLEGAL (13); RocketMQ returns SYSTEM_ERROR (1)
and an exception's name. A topic whose name would be too long for the delivery is refused with MESSAGE_ILLEGAL
(13); in RocketMQ, such a message blocks its level for ever. The hook ignores the level of a half message;
RocketMQ discards a delayed half message when it is due.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.limits import MAX_TOPIC_LENGTH
from rewindmq.protocol.message.properties import (
    DELAY,
    NAME_VALUE_SEPARATOR,
    REAL_QID,
    REAL_TOPIC,
    find_property,
    format_properties,
    parse_properties,
)
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import SCHEDULE_TOPIC, TRANS_HALF_TOPIC

# As many digits as Java's int.
_MAX_LEVEL_DIGITS: Final = 10
_DELAYABLE: Final = (0, int(MessageSysFlag.TRANSACTION_COMMIT))


class DelayHook:
    """The put-message hook for delay levels; also used for messages that the broker itself stores.

    Args:
        expect: called with the level before a message is stored in it.
    """

    def __init__(self, levels: DelayLevels, expect: Callable[[int], None]) -> None:
        self._levels = levels
        self._expect = expect

    def before_put(self, message: StoredMessage, text: str) -> StoredMessage:
        """Return the message rewritten for the schedule topic, or unchanged if it has no delay.

        Raises:
            RequestError: MESSAGE_ILLEGAL (13), the level is not a number, or the message could not be
                delivered later.
        """
        value = find_property(text, DELAY)
        level = 0 if value is None else _level_of(value)
        is_delayable = message.sys_flag & TRANSACTION_MASK in _DELAYABLE and message.topic != TRANS_HALF_TOPIC
        if level <= 0 or not is_delayable:
            return message
        if len(message.topic.encode()) > MAX_TOPIC_LENGTH:
            raise RequestError(
                ResponseCode.MESSAGE_ILLEGAL, f"topic[{message.topic}] is too long for delayed messages"
            )
        level = min(level, self._levels.highest)
        properties = readable_properties(message.properties)
        properties[DELAY] = str(level)
        properties[REAL_TOPIC] = message.topic
        properties[REAL_QID] = str(message.queue_id)
        self._expect(level)
        return msgspec.structs.replace(
            message,
            topic=SCHEDULE_TOPIC,
            queue_id=level - 1,
            properties=format_properties(properties).encode(),
        )


def readable_properties(text: bytes) -> dict[str, str]:
    """Return the properties without those whose value contains a separator: Java loses these, too."""
    properties = parse_properties(text.decode("utf-8", "replace"))
    return {name: value for name, value in properties.items() if NAME_VALUE_SEPARATOR not in value}


def _level_of(value: str) -> int:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_LEVEL_DIGITS):
        raise RequestError(
            ResponseCode.MESSAGE_ILLEGAL, f"DELAY {value!r} is not a delay level; nothing was stored"
        )
    return int(value)
