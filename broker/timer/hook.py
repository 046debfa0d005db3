"""Put-message hook for timer messages: redirects them to the timer topic.

Source: RocketMQ 5.5.1 ``HookUtils#handleScheduleMessage`` and ``#transformTimerMessage``.
Changed: a half message with a timer is refused, because RocketMQ delivers it to the half topic. A message
whose delivery would be impossible later, for its topic's length or its properties' length, is refused, too;
RocketMQ discards it when it is due. A delay whose end is beyond the range of Java's long is too long;
in RocketMQ, it overflows, and the message is delivered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES, MAX_TOPIC_LENGTH
from rewindmq.protocol.message.properties import (
    DELAY,
    PROPERTY_SEPARATOR,
    REAL_QID,
    REAL_TOPIC,
    TIMER_DEL_UNIQKEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
    find_property,
    without_properties,
)
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag
from rewindmq.protocol.names import TIMER_TOPIC, TRANS_HALF_TOPIC
from rewindmq.protocol.remoting.runtime import Clock
from rewindmq.protocol.text import parse_long

_TIMERS: Final = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
_TIMED: Final = (0, int(MessageSysFlag.TRANSACTION_COMMIT))
# TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS and TIMER_ROLL_TIMES, which are added later.
_LATER_BYTES: Final = 110
_PER_MILLE: Final = 1_000
_NOT_TIMED: Final = (
    "the message is illegal: with the properties that a timer message gets, it is longer than the broker"
    " accepts"
)


class TimerHook:
    """The put-message hook for timer messages; also used for messages that the broker itself stores.

    Args:
        expect: called before a message is stored in the timer topic.
        count_of: the number of messages that are due in the slot of a time.
    """

    def __init__(
        self,
        config: StoreConfig,
        clock: Clock,
        random: Random,
        expect: Callable[[], None],
        count_of: Callable[[int], int],
    ) -> None:
        self._is_enabled = config.timer_wheel_enable
        self._max_delay_ms = config.timer_max_delay_sec * 1_000
        self._precision_ms = config.timer_precision
        self._congest_num = config.timer_congest_num_each_slot
        self._clock = clock
        self._random = random
        self._expect = expect
        self._count_of = count_of

    def before_put(self, message: StoredMessage, text: str) -> StoredMessage:
        """Return the message rewritten for the timer topic, or unchanged if it is not to wait.

        Raises:
            RequestError: MESSAGE_ILLEGAL (13), the time is no number or too far; SYSTEM_ERROR (1), the broker
                has no timers, or too many in that second.
        """
        if message.sys_flag & TRANSACTION_MASK not in _TIMED or "TIMER_DE" not in text:
            return message
        if (level := find_property(text, DELAY)) is not None and not level.startswith(("0", "-")):
            # The level takes precedence.
            properties = without_properties(message.properties.decode("utf-8", "replace"), _TIMERS)
            return msgspec.structs.replace(message, properties=properties.encode())
        if message.topic == TIMER_TOPIC or find_property(text, TIMER_OUT_MS) is not None:
            return message
        name, value = _timer_of(text)
        if value is None:
            return message
        if not self._is_enabled:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                "accurate timer message is not enabled, timerWheelEnable is false",
            )
        if message.topic == TRANS_HALF_TOPIC:
            raise RequestError(
                ResponseCode.MESSAGE_ILLEGAL,
                f"a transactional message cannot have {name}; nothing was stored",
            )
        now_ms = self._clock.now_ms()
        deliver_ms = self._deliver_ms(name, value, now_ms)
        if deliver_ms <= now_ms:
            if find_property(text, TIMER_DEL_UNIQKEY) is not None:
                raise self._illegal()
            return message
        return self.redirected(message, deliver_ms)

    def _deliver_ms(self, name: str, value: str, now_ms: int) -> int:
        number = parse_long(value)
        if number is None:
            raise self._illegal()
        if name == TIMER_DELIVER_MS:
            deliver_ms = number
        else:
            delay_ms = number * (1_000 if name == TIMER_DELAY_SEC else 1)
            # Like the delay levels, a delay is scaled; a time is not.
            deliver_ms = now_ms + (
                delay_ms if self._clock.scale == 1.0 else round(delay_ms * self._clock.scale)
            )
            if delay_ms > self._max_delay_ms:
                raise self._illegal()
        if deliver_ms - now_ms > self._max_delay_ms:
            raise self._illegal()
        return deliver_ms

    def redirected(self, message: StoredMessage, deliver_ms: int) -> StoredMessage:
        """Return the message rewritten for the timer topic; its properties must be UTF-8 and complete.

        Args:
            deliver_ms: when it is to reach its topic, in the future.

        Raises:
            RequestError: MESSAGE_ILLEGAL (13), it could not be delivered; SYSTEM_ERROR (1), flow control.
        """
        out_ms = (deliver_ms - 1) // self._precision_ms * self._precision_ms
        self._check_congestion(out_ms)
        properties = message.properties
        if properties and not properties.endswith(b"\x02"):
            properties += b"\x02"
        properties += (
            f"{TIMER_OUT_MS}\x01{out_ms}\x02{REAL_TOPIC}\x01{message.topic}\x02"
            f"{REAL_QID}\x01{message.queue_id}{PROPERTY_SEPARATOR}"
        ).encode()
        if len(properties) > MAX_PROPERTIES_BYTES - _LATER_BYTES or (
            len(message.topic) > MAX_TOPIC_LENGTH // 3 and len(message.topic.encode()) > MAX_TOPIC_LENGTH
        ):
            raise RequestError(ResponseCode.MESSAGE_ILLEGAL, _NOT_TIMED)
        self._expect()
        return msgspec.structs.replace(message, topic=TIMER_TOPIC, queue_id=0, properties=properties)

    def _check_congestion(self, out_ms: int) -> None:
        """Refuse some messages if very many are due in one second (``TimerMessageStore#isReject``)."""
        limit = self._congest_num
        count = self._count_of(out_ms)
        if count <= limit:
            return
        share = _PER_MILLE * (count - limit) / (limit + 0.1)
        if count >= 2 * limit or self._random.randrange(_PER_MILLE) > share:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"timer message is under flow control, max num limit is {2 * limit} or the current value is"
                f" greater than {limit} and less than {2 * limit}, trigger random flow control",
            )

    def _illegal(self) -> RequestError:
        return RequestError(
            ResponseCode.MESSAGE_ILLEGAL,
            "timer message illegal, the delay time should not be bigger than the max delay"
            f" {self._max_delay_ms}ms; or if set del msg, the delay time should be bigger than the current"
            " time",
        )


def _timer_of(text: str) -> tuple[str, str | None]:
    """Return the timer property that applies, and its value; None without one."""
    for name in _TIMERS:
        if (value := find_property(text, name)) is not None:
            return name, value
    return "", None
