"""Limits on the bodies of requests, by request code; RocketMQ limits only the frame (16 MiB).

A server refuses a larger body before it decodes it, so that no request occupies its event loop for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.limits import MAX_FRAME_BYTES


class RequestLimit(NamedTuple):
    """Limits on the body of a request.

    Attributes:
        body_bytes: the largest body.
        values: the most texts, numbers, arrays, objects and keys in a structured body, about; decoding takes
            some microseconds for each.
    """

    body_bytes: int
    values: int


# RocketMQ's requests have bodies of some hundred bytes, or none, with the exceptions below.
MAX_REQUEST_BODY_BYTES: Final = 131_072
# HEART_BEAT (34): about 2,000 subscriptions. LOCK_BATCH_MQ (41), UNLOCK_BATCH_MQ (42): about 5,000 queues.
# UPDATE_AND_CREATE_TOPIC_LIST (18): about 1,500 topics. UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225): about
# 700 groups.
MAX_CLIENT_BODY_BYTES: Final = 524_288
# Some 30 ms of decoding at the worst.
MAX_REQUEST_VALUES: Final = 30_000
# REGISTER_BROKER (103), RESET_CONSUMER_CLIENT_OFFSET (220) and a response to GET_CONSUMER_STATUS_FROM_CLIENT
# (221): 100,000 topics, or as many queues.
MAX_TABLE_VALUES: Final = 1_500_000

DEFAULT_REQUEST_LIMIT: Final = RequestLimit(MAX_REQUEST_BODY_BYTES, MAX_REQUEST_VALUES)
_MESSAGES: Final = RequestLimit(MAX_FRAME_BYTES, MAX_REQUEST_VALUES)
_TABLE: Final = RequestLimit(MAX_FRAME_BYTES, MAX_TABLE_VALUES)
_CLIENT: Final = RequestLimit(MAX_CLIENT_BODY_BYTES, MAX_REQUEST_VALUES)

REQUEST_LIMITS: Final[Mapping[int, RequestLimit]] = MappingProxyType(
    {
        RequestCode.SEND_MESSAGE: _MESSAGES,
        RequestCode.SEND_MESSAGE_V2: _MESSAGES,
        RequestCode.SEND_BATCH_MESSAGE: _MESSAGES,
        RequestCode.SEND_REPLY_MESSAGE: _MESSAGES,
        RequestCode.SEND_REPLY_MESSAGE_V2: _MESSAGES,
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: _MESSAGES,
        RequestCode.CHECK_TRANSACTION_STATE: _MESSAGES,
        RequestCode.CONSUME_MESSAGE_DIRECTLY: _MESSAGES,
        RequestCode.HEART_BEAT: _CLIENT,
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: _CLIENT,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _CLIENT,
        RequestCode.LOCK_BATCH_MQ: _CLIENT,
        RequestCode.UNLOCK_BATCH_MQ: _CLIENT,
        RequestCode.REGISTER_BROKER: _TABLE,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET: _TABLE,
    }
)


def request_limit(code: int) -> RequestLimit:
    """Return the limits of a request code."""
    return REQUEST_LIMITS.get(code, DEFAULT_REQUEST_LIMIT)
