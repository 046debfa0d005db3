"""Parses the target of a reset, and finds its offset in a queue."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rewindmq.broker.store.consume_queue.offset_search import search_boundary, search_nearest
from rewindmq.broker.store.model import Boundary
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.moment import parse_moment
from rewindmq.pipeline.replay.plan import Mode
from rewindmq.pipeline.snapshot.queue_view import LogView, QueueView

_END: Final = ("-1", "max", "now")
_OFFSET: Final = re.compile(r"offset:([0-9]{1,18})")


class Target(NamedTuple):
    """A time in ms, or an offset, or neither: the end of every queue."""

    timestamp: int | None = None
    offset: int | None = None


def parse_target(text: str) -> Target:
    """Parse the value of ``--to``.

    Args:
        text: a time as for ``parse_moment``; ``offset:N``; or ``-1``, ``max`` or ``now`` for the end of
            every queue. ``now`` leads to the end in 4.9.3 to 4.9.8, in 5.0.0 and from 5.1.1 on. In 4.2.0 to
            4.9.2 and in 5.1.0 it replays one message of each queue (docs/spec/reset.md D.1).

    Raises:
        PipelineError: the text has none of these forms.
    """
    text = text.strip()
    if text in _END:
        return Target()
    match = _OFFSET.fullmatch(text)
    if match is not None:
        return Target(offset=int(match[1]))
    try:
        return Target(timestamp=parse_moment(text))
    except PipelineError as error:
        raise PipelineError(f"{error}; or offset:N, or -1 for the end of every queue") from None


def find_target(target: Target, mode: Mode, queue: QueueView, log: LogView) -> int:
    """Return the offset to which a broker would reset the queue; a given offset is returned unchanged."""
    if target.offset is not None:
        return target.offset
    if target.timestamp is None or queue.max_offset == 0:
        return queue.max_offset
    if mode is Mode.NEAREST:
        return search_nearest(queue, log, target.timestamp)
    return search_boundary(queue, log, target.timestamp, Boundary.LOWER)


def is_deleted(target: Target, queue: QueueView, log: LogView) -> bool:
    """Whether the target is before the first retained message, and older messages were deleted."""
    if queue.min_offset == 0:
        return False
    if target.offset is not None:
        return target.offset < queue.min_offset
    if target.timestamp is None:
        return False
    first = queue.entry(queue.min_offset)
    return first is None or target.timestamp < log.store_time(first[0])
