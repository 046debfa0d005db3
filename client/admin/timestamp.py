"""Parses and formats times in the tool's local time zone (RocketMQ 4.9.4 ``UtilAll``)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_time import parse_reset_time

# In INVOKE_BROKER_TO_RESET_OFFSET (222), this timestamp means the end of every queue.
MAX_OFFSET_TIMESTAMP: Final = -1
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"([0-9]{1,9})([smhd])")


def parse_reset_timestamp(text: str, profile: Profile, now_ms: int) -> int:
    """Parse the ``-s`` option of a reset.

    Args:
        text: milliseconds since the epoch, ``yyyy-MM-dd#HH:mm:ss:SSS`` in local time, ``-1`` for the end of
            every queue, or ``now``.
        profile: decides what ``now`` means: the end of every queue in v49 (``ResetOffsetByTimeCommand`` of
            4.9.3 to 4.9.8), the current time in v42 and v53 (docs/spec/reset.md D.1).
        now_ms: the current time.

    Raises:
        ClientError: the text has none of these forms.
    """
    text = text.strip()
    if text == "now":
        return MAX_OFFSET_TIMESTAMP if profile.release is Profile.V49 else now_ms
    if text == "-1":
        return MAX_OFFSET_TIMESTAMP
    milliseconds = parse_reset_time(text)
    if milliseconds is not None:
        return milliseconds
    raise ClientError(
        f"{text!r} is not a time: give milliseconds, yyyy-MM-dd#HH:mm:ss:SSS, now, or -1 for the queues' end"
    )


def parse_duration(text: str) -> int:
    """Parse ``90s``, ``15m``, ``2h`` or ``7d`` to milliseconds.

    Raises:
        ClientError: the text has none of these forms.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ClientError(f"must be a number and s, m, h or d, as in 2h, not {text[:30]!r}")
    return int(match[1]) * _UNIT_MS[match[2]]


def format_seconds(timestamp: int) -> str:
    """``yyyy-MM-dd HH:mm:ss`` in local time."""
    return _local(timestamp).strftime("%Y-%m-%d %H:%M:%S")


def format_milliseconds(timestamp: int) -> str:
    """``yyyy-MM-dd HH:mm:ss,SSS`` in local time."""
    return f"{format_seconds(timestamp)},{timestamp % 1000:03d}"


def _local(timestamp: int) -> datetime:
    return datetime.fromtimestamp(timestamp // 1000, tz=UTC).astimezone()
