"""Targets of a reset: the start, the end, a mark, a time, or an offset for each queue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.testing.errors import KitError
from rewindmq.testing.handles.mark import Mark

ResetTarget = Literal["begin", "end"] | Mark | datetime | int | Mapping[MessageQueue, int]

_BEGIN_MS: Final = 0
_END_MS: Final = -1


def timestamp_of(to: Literal["begin", "end"] | Mark | datetime | int) -> int:
    """Return a target as INVOKE_BROKER_TO_RESET_OFFSET (222) takes it: ms since 1970, -1 for the end.

    A ``datetime`` without a time zone is local time.

    Raises:
        KitError: none of the kinds above.
    """
    if isinstance(to, Mark):
        return to.at_ms
    if isinstance(to, datetime):
        return int(to.timestamp() * 1_000)
    if isinstance(to, int) and not isinstance(to, bool):
        return to
    if to == "begin":
        return _BEGIN_MS
    if to == "end":
        return _END_MS
    raise KitError(
        'a reset goes to "begin", "end", a mark, a datetime, ms since 1970 or {queue: offset},'
        f" not to {to!r}"
    )
