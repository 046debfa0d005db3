"""Parses times and durations that users write."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from rewindmq.pipeline.errors import PipelineError
from rewindmq.protocol.reset_time import parse_reset_time

# The last time that Spark's and Python's types can hold, in ms.
MAX_MOMENT_MS: Final = 253_402_300_799_999
_DURATION: Final = re.compile(r"(\d{1,12})(ms|s|m|h|d)")
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_moment(text: str) -> int:
    """Return a time in ms since the epoch.

    Args:
        text: milliseconds since the epoch; ``yyyy-MM-dd#HH:mm:ss:SSS`` in local time, as mqadmin takes it; or
            ISO 8601 (``2026-03-01``, ``2026-03-01T12:30:00``, ``...+02:00``, ``...Z``). ISO 8601 without a
            zone is local time.

    Raises:
        PipelineError: the text has none of these forms, or the time is before the epoch.
    """
    text = text.strip()
    moment = parse_reset_time(text)
    if moment is None:
        moment = _from_iso(text)
    if moment is None or not 0 <= moment <= MAX_MOMENT_MS:
        raise PipelineError(
            f"{text!r} is not a time: give milliseconds since 1970, yyyy-MM-dd#HH:mm:ss:SSS, or ISO 8601"
            " as in 2026-03-01T12:30:00"
        )
    return moment


def parse_duration(text: str) -> int:
    """Return a duration in ms: a number with a unit (``500ms``, ``30s``, ``15m``, ``12h``, ``7d``), or ``0``.

    Raises:
        PipelineError: the text is not a duration.
    """
    text = text.strip()
    match = _DURATION.fullmatch(text)
    if match is None:
        if text == "0":
            return 0
        raise PipelineError(f"{text!r} is not a duration: give a number and ms, s, m, h or d, as in 12h")
    return int(match[1]) * _UNIT_MS[match[2]]


def _from_iso(text: str) -> int | None:
    try:
        # Local time if the text names no zone.
        moment = datetime.fromisoformat(text).astimezone()
        return int(moment.timestamp()) * 1_000 + moment.microsecond // 1_000
    except (ValueError, OverflowError, OSError):
        return None
