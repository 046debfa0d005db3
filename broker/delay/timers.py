"""Put-message hook that refuses 5.x's timer messages, which ask for delivery at any moment.

RocketMQ 5.3.3 stores them in a timer wheel (``TimerMessageStore``), which this broker does not have. It
behaves like a 5.3.3 broker with ``timerWheelEnable=false``, except that it returns MESSAGE_ILLEGAL (13)
instead of SYSTEM_ERROR (1). A message that also has a delay level is stored: the level takes precedence.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message.properties import DELAY, find_property

_TIMERS: Final = ("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")


def refuse_timers(message: StoredMessage, text: str) -> StoredMessage:
    """Return the message unchanged, or refuse it if it has a timer property.

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), because the message would be delivered at once.
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
