"""Trace points: every step at which two interleavings of a reset can differ.

The code emits them through ``Runtime.probe``; without a probe, a point costs one ``is not None``.
``docs/race/events.md`` lists the details of each point.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any


class Point(StrEnum):
    """A step that the code has just taken.

    Some points need more than their names. ``QUEUE_DROPPED`` is emitted once per ProcessQueue when a consumer
    gives up a queue: by a reset, a rebalance, PULL_OFFSET_MOVED (21), a fenced commit or a shutdown.
    ``QUEUE_REMOVED`` is emitted when a reset removes a ProcessQueue from the table. ``QUEUE_RESTARTED`` is
    emitted when another ProcessQueue replaces it at once; its details are ``chain``, ``epoch`` and
    ``offset``. ``RESULT_ACCEPTED`` comes between the last check of ``dropped`` and ``OFFSET_UPDATED``.
    ``OFFSET_UPDATED`` is omitted if the consumer does not store the offset.
    """

    # Administrator.
    ROUTE_QUERIED = "admin.route_queried"
    RESET_SENT = "admin.reset_sent"
    RESET_ANSWERED = "admin.reset_answered"
    # Broker.
    RESET_RECEIVED = "broker.reset_received"
    RESET_TARGETS_COMPUTED = "broker.reset_targets_computed"
    CLIENT_NOTIFIED = "broker.client_notified"
    COMMIT_RECEIVED = "broker.commit_received"
    COMMIT_FENCED = "broker.commit_fenced"
    OFFSET_RESET = "broker.offset_reset"
    OFFSETS_FLUSHED = "broker.offsets_flushed"
    MARK_COLLECTED = "broker.mark_collected"
    OFFSET_QUERIED = "broker.offset_queried"
    PULL_SUSPENDED = "broker.pull_suspended"
    PULL_ANSWERED = "broker.pull_answered"
    # Consumer, the reset procedure.
    RESET_NOTIFICATION_RECEIVED = "client.reset_notification_received"
    SUSPENDED = "client.suspended"
    QUEUE_DROPPED = "client.queue_dropped"
    WAIT_OVER = "client.wait_over"
    OFFSET_APPLIED = "client.offset_applied"
    COMMIT_SENT = "client.commit_sent"
    QUEUE_REMOVED = "client.queue_removed"
    RESUMED = "client.resumed"
    # Consumer, outside the reset procedure.
    REBALANCED = "client.rebalanced"
    QUEUE_ADDED = "client.queue_added"
    PULL_SENT = "client.pull_sent"
    PULL_CALLBACK = "client.pull_callback"
    LISTENER_CALLED = "client.listener_called"
    LISTENER_RETURNED = "client.listener_returned"
    RESULT_ACCEPTED = "client.result_accepted"
    RESULT_DISCARDED = "client.result_discarded"
    QUEUE_RESTARTED = "client.queue_restarted"
    OFFSET_UPDATED = "client.offset_updated"
    PERSIST_TICK = "client.persist_tick"
    COMMIT_READ = "client.commit_read"


# Called as probe(point, details); the details are plain values (topic, group, queue, offset, ...).
Probe = Callable[[Point, dict[str, Any]], None]
# Awaited as failpoint(point, details) where, in RocketMQ, another thread may run between two steps.
Failpoint = Callable[[Point, dict[str, Any]], Awaitable[None]]
