"""Offsets, and what was handed out since queues were set back: the body of RewindMQ's LIST_REWINDS."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class PullRun(RemotingBody):
    """What one client pulled from a queue without a break.

    Attributes:
        client_id: as in the client's heartbeat; ``host:port`` without one.
        first, next: the messages handed out are those from ``first`` to before ``next``.
        asked: the highest offset that it pulled at: it has received all messages before it.
        is_current: False if it has asked for the stored offset since, was redirected, pulled elsewhere, or
            its connection has closed.
    """

    client_id: str
    first: Int64
    next: Int64
    asked: Int64
    is_current: bool


class Rewind(RemotingBody):
    """A queue's latest rewind.

    Attributes:
        number: counts the rewinds of all queues since the broker's start, from 1.
        at: ms since 1970.
        old, target: the stored offset before and after it; ``old`` is -1 if none was stored.
        start, end: the messages to be handed out are those from ``start`` to before ``end``: from the target,
            or the first message that had not expired, to the queue's end at that time.
        handed_out: every message from ``start`` to before it was handed out again, or has expired.
        committed: the highest offset stored since.
        passed: the first commit above ``handed_out``, stored or repaired since; None if there was none.
        runs: in order of their begin; the newest eight.
        notes_all_pulls: no message can have been handed out unnoticed: the rewind began with a reset, so no
            consumer was in the redelivery already, and the broker sends no consumer to its slaves.
    """

    number: Int64
    at: Int64
    old: Int64
    target: Int64
    start: Int64
    end: Int64
    handed_out: Int64
    committed: Int64
    passed: Int64 | None = None
    runs: list[PullRun] = field(default_factory=list)
    notes_all_pulls: bool = True


class QueueRewind(RemotingBody):
    """A group's stored offset in a queue, and the queue's latest rewind.

    Attributes:
        stored: -1 if there is none.
        max_offset: the queue's end.
        awaited: the target of a classic reset that no consumer has committed yet; None if there is none.
        rewind: None if the queue had none since the broker's start, or the broker has forgotten it.
    """

    queue_id: Int32
    stored: Int64
    max_offset: Int64
    awaited: Int64 | None = None
    rewind: Rewind | None = None


class RewindList(RemotingBody):
    """A group's queues of a topic at one broker, by queue id."""

    queues: list[QueueRewind] = field(default_factory=list)
