"""Target: what a reset asks for, a point in time or an offset for each queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue

# An offset for each queue; queues that it does not name stay where they are.
Offsets = Mapping[MessageQueue, int]
# A point in time is in ms since the epoch; -1 is the end of every queue.
Target = int | Offsets


def require_queues(topic: str, offsets: Offsets, known: Iterable[MessageQueue]) -> None:
    """Refuse offsets of queues that the topic does not have.

    Raises:
        ClientError: a queue is not among ``known``.
    """
    if unknown := sorted(offsets.keys() - set(known)):
        names = ", ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in unknown[:5])
        raise ClientError(f"topic {topic} has no queue {names}: see topicRoute for its queues")


def check_range(queue: MessageQueue, offset: int, least: int, most: int) -> None:
    """Refuse an offset that the queue does not have.

    Raises:
        ClientError: the offset is below ``least`` or above ``most``.
    """
    if not least <= offset <= most:
        raise ClientError(
            f"offset {offset} of {queue.broker_name}:{queue.queue_id} is out of range: give {least} to {most}"
        )
