"""The folder of a queue in RocketMQ's layout: ``<topic>/<queueId>``."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.names import PathNameError, is_path_name, relative_path

_MAX_QUEUE_ID: Final = 0x7FFF_FFFF


def names_a_queue(topic: str, queue_id: int) -> bool:
    """Return True if topic and id can be folders of RocketMQ's layout."""
    return 0 <= queue_id <= _MAX_QUEUE_ID and is_path_name(topic)


def queue_path(topic: str, queue_id: int) -> str:
    """Return ``topic/queueId``, below the folder of all queues.

    Raises:
        PathNameError: topic or id cannot be folders.
    """
    if not names_a_queue(topic, queue_id):
        raise PathNameError(f"queue {queue_id} of topic {topic[:255]!r} cannot be a folder")
    return relative_path(topic, str(queue_id))
