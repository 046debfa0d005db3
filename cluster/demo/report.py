"""The demo's result: every measured figure with its expected value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rewindmq.cluster.demo.timeline import Timeline
from rewindmq.protocol.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class Figure:
    """One verified number.

    Attributes:
        at_least: ``expected`` is a lower bound.
    """

    phase: str
    name: str
    expected: float
    measured: float
    at_least: bool = False

    @property
    def is_ok(self) -> bool:
        return self.measured >= self.expected if self.at_least else self.measured == self.expected


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue of one reset.

    Attributes:
        old: the group's stored offset before the reset.
        expected: the target offset, computed from the timestamp and the messages' store times.
        requested: the target offset that the broker returned to INVOKE_BROKER_TO_RESET_OFFSET (222).
        stored: the stored offset that the consumer read when it took the queue over again.
        redelivered: number of messages that were delivered again.
    """

    queue: MessageQueue
    old: int
    expected: int
    requested: int
    stored: int
    redelivered: int


@dataclass(frozen=True, slots=True)
class DemoReset:
    """One reset.

    Attributes:
        answered_ms: ms from the command until it returned.
        finished_ms: ms from the command until the group had consumed everything again.
    """

    name: str
    timestamp: int
    answered_ms: int
    finished_ms: int
    rows: list[QueueRow]
    timeline: Timeline


@dataclass(slots=True)
class DemoReport:
    """The whole result."""

    options: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)
    resets: list[DemoReset] = field(default_factory=list)
    processes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_ok(self) -> bool:
        return bool(self.figures) and all(figure.is_ok for figure in self.figures)

    def failures(self) -> list[Figure]:
        return [figure for figure in self.figures if not figure.is_ok]

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``--report``. Names are camelCase, as in RocketMQ's JSON; times are ms."""
        return {
            "ok": self.is_ok,
            "seconds": round(self.seconds, 3),
            "options": self.options,
            "processes": self.processes,
            "figures": [
                {
                    "phase": figure.phase,
                    "name": figure.name,
                    "expected": figure.expected,
                    "atLeast": figure.at_least,
                    "measured": figure.measured,
                    "ok": figure.is_ok,
                }
                for figure in self.figures
            ],
            "resets": [_reset_json(reset) for reset in self.resets],
        }


def _reset_json(reset: DemoReset) -> dict[str, Any]:
    return {
        "name": reset.name,
        "timestamp": reset.timestamp,
        "answeredMs": reset.answered_ms,
        "finishedMs": reset.finished_ms,
        "queues": [
            {
                "brokerName": row.queue.broker_name,
                "queueId": row.queue.queue_id,
                "old": row.old,
                "expected": row.expected,
                "requested": row.requested,
                "stored": row.stored,
                "redelivered": row.redelivered,
            }
            for row in reset.rows
        ],
        "timeline": {
            "admin": [{"step": step.name, "atMs": step.at_ms} for step in reset.timeline.admin],
            "notifications": [asdict(notification) for notification in reset.timeline.notifications],
        },
    }
