"""A message with a delay level goes to the schedule topic first.

RocketMQ 4.9.4 ``CommitLog#asyncPutMessage``; 5.3.3 ``HookUtils#transformDelayLevelMessage``. Changed: a level
that is no number is refused with 13 (there: 1 and an exception's name); so is a topic too long to be stored
later (there: the level stands still for ever); the level of a half message is not looked at (there: it is
thrown away when it is due).
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

# Java's int has no more digits.
_MAX_LEVEL_DIGITS: Final = 10
_DELAYABLE: Final = (0, int(MessageSysFlag.TRANSACTION_COMMIT))


class DelayHook:
    """The step of ``PutMessageHooks`` for delay levels; also for what the broker stores by itself.

    Args:
        expect: told the level a message is about to be stored for.
    """

    def __init__(self, levels: DelayLevels, expect: Callable[[int], None]) -> None:
        self._levels = levels
        self._expect = expect

    def before_put(self, message: StoredMessage, text: str) -> StoredMessage:
        """The message as the schedule topic keeps it, or the same one when it is not to be delayed.

        Raises:
            RequestError: 13, the level is no number, or the message could not be delivered later.
        """
        value = find_property(text, DELAY)
        level = 0 if value is None else _level_of(value)
        is_delayable = message.sys_flag & TRANSACTION_MASK in _DELAYABLE and message.topic != TRANS_HALF_TOPIC
        if level <= 0 or not is_delayable:
            return message
        if len(message.topic.encode()) > MAX_TOPIC_LENGTH:
            raise RequestError(
                ResponseCode.MESSAGE_ILLEGAL, f"topic[{message.topic}] is too long to be delayed to"
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
    """The properties of a message that can be written again; as in Java, others are lost."""
    properties = parse_properties(text.decode("utf-8", "replace"))
    return {name: value for name, value in properties.items() if NAME_VALUE_SEPARATOR not in value}


def _level_of(value: str) -> int:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MAX_LEVEL_DIGITS):
        raise RequestError(
            ResponseCode.MESSAGE_ILLEGAL, f"DELAY {value!r} is no delay level; nothing was stored"
        )
    return int(value)
