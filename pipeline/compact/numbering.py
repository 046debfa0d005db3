"""Checks that the queue offsets of each queue increase, which all decisions of a compaction require."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from rewindmq.pipeline.compact.survivors import QueueTotals
from rewindmq.pipeline.compact.topics import Treatment
from rewindmq.pipeline.errors import PipelineError

# Kinds of messages that have a queue offset.
IN_QUEUES: Final = (
    Treatment.KEYED, Treatment.WHOLE, Treatment.HALF, Treatment.KEYLESS, Treatment.DONE, Treatment.OTHER,
    Treatment.DAMAGED,
)  # fmt: skip


def check_numbers(totals: Sequence[QueueTotals], ends: Mapping[tuple[str, int], int]) -> None:
    """Refuse a log in which a queue of the output restarts its numbering.

    Args:
        ends: per queue, one past the offset of the newest message that earlier runs read.

    Raises:
        PipelineError: a queue's offsets go back before its newest message.
    """
    counted = [total for total in totals if total.kind in IN_QUEUES and total.kind is not Treatment.OTHER]
    counted.sort(key=lambda total: (total.topic, total.queue_id))
    for (topic, queue_id), kinds in groupby(counted, lambda total: (total.topic, total.queue_id)):
        queue = list(kinds)
        newest = max(queue, key=lambda total: total.newest)
        last = max(total.last for total in queue)
        lowest = min((total.lowest for total in queue if total.lowest is not None), default=None)
        stepped_back = 0 <= newest.newest_at < last
        if stepped_back or (lowest is not None and lowest < ends.get((topic, queue_id), 0)):
            raise PipelineError(
                f"queue {queue_id} of {topic} restarts its numbering at or before log position {last}: the"
                " topic was deleted and created again, so newer messages cannot be told from older ones."
                " Leave the topic out by naming the others with --topic (compaction format), or wait until"
                " the log up to that position has expired"
            )
