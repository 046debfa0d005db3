"""The times an operator types and reads, in the tool's local zone (RocketMQ 4.9.4 ``UtilAll``)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.profile import Profile

# What 222 calls the end of every queue.
MAX_OFFSET_TIMESTAMP: Final = -1

_DATE: Final = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)#(\d\d?):(\d\d?):(\d\d?):(\d{1,3})")
_LAST_MILLISECOND: Final = 2**63 - 1


def parse_reset_timestamp(text: str, profile: Profile, now_ms: int) -> int:
    """Read the ``-s`` option of a reset.

    Args:
        text: milliseconds since the epoch, ``yyyy-MM-dd#HH:mm:ss:SSS`` in local time, ``-1`` for the end of
            every queue, or ``now``.
        profile: what ``now`` means: the end of every queue in v49 (``ResetOffsetByTimeCommand`` of 4.9.3 to
            4.9.8), the current time before and after (``behaviour.md`` D.1).
        now_ms: the current time.

    Raises:
        ClientError: the text is none of these.
    """
    text = text.strip()
    if text == "now":
        return MAX_OFFSET_TIMESTAMP if profile.release is Profile.V49 else now_ms
    if text == "-1":
        return MAX_OFFSET_TIMESTAMP
    # 19 digits hold every 64-bit number; the test also keeps int() from reading other scripts' digits.
    if text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= _LAST_MILLISECOND:
        return int(text)
    date = _DATE.fullmatch(text)
    if date is not None:
        try:
            return _local_milliseconds(*map(int, date.groups()))
        except (ValueError, OverflowError, OSError):
            pass
    raise ClientError(
        f"{text!r} is no time: give milliseconds, yyyy-MM-dd#HH:mm:ss:SSS, now, or -1 for the queues' end"
    )


def _local_milliseconds(
    year: int, month: int, day: int, hour: int, minute: int, second: int, millisecond: int
) -> int:
    local = datetime(year, month, day, hour, minute, second).astimezone()
    return int(local.timestamp()) * 1000 + millisecond


def format_seconds(timestamp: int) -> str:
    """``yyyy-MM-dd HH:mm:ss`` in local time."""
    return _local(timestamp).strftime("%Y-%m-%d %H:%M:%S")


def format_milliseconds(timestamp: int) -> str:
    """``yyyy-MM-dd HH:mm:ss,SSS`` in local time."""
    return f"{format_seconds(timestamp)},{timestamp % 1000:03d}"


def _local(timestamp: int) -> datetime:
    return datetime.fromtimestamp(timestamp // 1000, tz=UTC).astimezone()
