"""Decides whether a message is sent again after an error, to another broker if there is one.

Source: RocketMQ 4.9.4 ``DefaultMQProducerImpl#sendDefaultImpl``. Changed: RocketMQ's client takes a response
that it cannot read for a lost connection, sends again, and so stores the message several times.
"""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import (
    ClientError,
    ConnectError,
    NotConnectedError,
    RequestTimeoutError,
    ResponseError,
    RewindMQError,
    TooManyRequestsError,
    UnreadableResponseError,
)

# ``DefaultMQProducer#retryResponseCodes``.
RESEND_CODES: Final = frozenset(
    int(code)
    for code in (
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    )
)
BUSY_CODES: Final = frozenset((int(ResponseCode.SYSTEM_BUSY), int(ResponseCode.GO_AWAY)))

# Errors of a message that has not left. After another ``RemotingError`` it may be stored.
UNSENT: Final = (ClientError, ConnectError, NotConnectedError, TooManyRequestsError)


def may_resend(error: RewindMQError, codes: frozenset[int] = RESEND_CODES) -> bool:
    """Return True if another broker may accept the message.

    False after a time-out, when no time is left, and after a response that cannot be read: the broker has
    probably stored the message.

    Args:
        codes: the response codes after which a message is sent again.
    """
    if isinstance(error, ResponseError):
        return error.code in codes
    return not isinstance(error, (RequestTimeoutError, UnreadableResponseError))
