"""Details of a consumer's queue for the probe (the tables of events in ``docs/race/events.md``)."""

from __future__ import annotations

from typing import Any

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.protocol.message_queue import MessageQueue


def queue_details(
    client_id: str,
    group: str,
    queue: MessageQueue,
    offset: int,
    process_queue: ProcessQueue | None = None,
) -> dict[str, Any]:
    """Return the details of a trace point; ``process_queue`` adds its ``chain`` and ``epoch``, if known."""
    details = {
        "client_id": client_id,
        "group": group,
        "topic": queue.topic,
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
        "offset": offset,
    }
    if process_queue is not None:
        details["chain"] = process_queue.chain
        if process_queue.epoch is not None:
            details["epoch"] = process_queue.epoch
    return details
