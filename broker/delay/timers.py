"""Messages for a moment of their own, 5.x: refused.

RocketMQ 5.3.3 keeps them in a timer wheel (``TimerMessageStore``), which this broker does not have. It acts
as a 5.3.3 broker with ``timerWheelEnable=false``, but by 13 (there: 1). As there, a delay level goes first.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message.properties import DELAY, find_property

_TIMERS: Final = ("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")


def refuse_timers(message: StoredMessage, text: str) -> StoredMessage:
    """The step of ``PutMessageHooks`` for timers.

    Raises:
        RequestError: 13, the message would have been delivered at once.
    """
    if (find_property(text, DELAY) or "0").startswith(("0", "-")):
        for name in _TIMERS:
            if find_property(text, name) is not None:
                raise RequestError(
                    ResponseCode.MESSAGE_ILLEGAL,
                    f"accurate timer message is not enabled: {name} is not supported, use a delay level;"
                    " nothing was stored",
                )
    return message
