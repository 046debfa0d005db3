"""Parses the time of a reset as an operator writes it (RocketMQ 4.9.4 ``UtilAll``)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

_DATE: Final = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)#(\d\d?):(\d\d?):(\d\d?):(\d{1,3})")
_LAST_MILLISECOND: Final = 2**63 - 1


def parse_reset_time(text: str) -> int | None:
    """Parse milliseconds since 1970, or ``yyyy-MM-dd#HH:mm:ss:SSS`` in local time.

    Returns:
        Milliseconds (0 to 2^63 - 1 if the text is digits), or None if the text has neither form.
    """
    # 19 digits hold every 64-bit number; the check also keeps int() from reading digits of other scripts.
    if text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= _LAST_MILLISECOND:
        return int(text)
    date = _DATE.fullmatch(text)
    if date is None:
        return None
    try:
        return _local_milliseconds(*map(int, date.groups()))
    except (ValueError, OverflowError, OSError):
        return None


def _local_milliseconds(
    year: int, month: int, day: int, hour: int, minute: int, second: int, millisecond: int
) -> int:
    local = datetime(year, month, day, hour, minute, second).astimezone()
    return int(local.timestamp()) * 1000 + millisecond
