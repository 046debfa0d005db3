"""ResetRecord: what was asked of a reset and what was seen of it, as the history keeps it in JSON."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from rewindmq.watch.verdict.states import State

# Version of the file's form.
VERSION: Final = 1


class Status(StrEnum):
    """How far a watched reset has come. ``PROVEN``, ``LOST`` and ``UNKNOWN`` are verdicts of the watch."""

    RUNNING = "running"
    PROVEN = "proven"
    LOST = "lost"
    UNKNOWN = "unknown"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class SeenPosition(msgspec.Struct, frozen=True, rename="camel"):
    """A consumer's work on a queue in one sample.

    Attributes:
        low: the lowest offset that it has not consumed.
        holds: it holds messages in memory, from ``low`` on.
        dropped: it gives the queue up.
    """

    client_id: str
    low: int
    holds: bool
    dropped: bool


class Seen(msgspec.Struct, frozen=True):
    """What one sample showed of a queue; samples that show the same as the one before are left out.

    Attributes:
        at: protocol seconds after the reset.
        stored: the stored offset; None if the broker did not answer.
    """

    at: float
    stored: int | None
    positions: tuple[SeenPosition, ...]


class QueueRecord(msgspec.Struct, rename="camel"):
    """One queue of a watched reset.

    Attributes:
        before: the stored offset right before the reset.
        stored: the latest one that a broker told.
        since: when the state was reached, in protocol seconds after the reset.
        consumer: client id of the consumer that has the queue.
        holder: client id of the consumer that still holds messages of before the reset.
        held_from: the lowest of their offsets.
        reason: why the state is proven, lost or unknown.
        waits_for: what the next state needs; "" once the queue is decided.
        races: ids of the races of docs/race/ that the evidence fits.
        is_cut: samples were left out of ``seen``, because the record is full.
    """

    broker_name: str
    queue_id: int
    before: int
    target: int
    state: State
    stored: int | None = None
    since: float = 0.0
    consumer: str | None = None
    holder: str | None = None
    held_from: int | None = None
    reason: str = ""
    waits_for: str = ""
    races: tuple[str, ...] = ()
    seen: list[Seen] = msgspec.field(default_factory=list)
    is_cut: bool = False

    @property
    def name(self) -> str:
        return f"{self.broker_name}/{self.queue_id}"


class RecordedEvent(msgspec.Struct, frozen=True):
    """A step of the story: the reset, a queue's new state, a repair.

    Attributes:
        at: protocol seconds after the reset.
        kind: "reset", "repair" or a queue's state.
        queue: the queue's name, such as ``broker-a/0``; "" for all.
    """

    at: float
    kind: str
    text: str
    queue: str = ""


class Summary(msgspec.Struct, rename="camel"):
    """What the list of resets shows of one.

    Attributes:
        timestamp: ms since 1970 that the group went to; -1 is the end of every queue; None: an offset for
            each queue.
        as_group: the group whose stored offsets the group took; "": none, or a record of an older version.
        began_ms, ended_ms: ms since 1970; ``ended_ms`` is None while the reset is watched.
        counts: state to number of queues.
        problem: why the reset failed, or was not watched to its end.
    """

    version: Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
    id: str
    group: str
    topic: str
    timestamp: int | None
    began_ms: int
    status: Status = Status.RUNNING
    ended_ms: int | None = None
    repairs: int = 0
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    problem: str = ""
    as_group: str = ""


class ResetRecord(Summary, rename="camel"):
    """A watched reset.

    Attributes:
        mode: the mode that was asked for; "" leaves it to the brokers.
        modes: broker name to the mode that it used.
        max_repairs: how often lost queues may be reset again.
        queues: sorted.
        is_cut: events were left out, because the record is full.
        unsaved: why the latest write of the record failed.
        evidence: what the watch would be able to say, in sentences, right before the reset.
        passed, left: protocol seconds from the latest reset to the last sample, and until open queues are
            given up.
    """

    mode: str = ""
    modes: dict[str, str] = msgspec.field(default_factory=dict)
    max_repairs: int = 0
    queues: list[QueueRecord] = msgspec.field(default_factory=list)
    events: list[RecordedEvent] = msgspec.field(default_factory=list)
    is_cut: bool = False
    unsaved: str = ""
    evidence: list[str] = msgspec.field(default_factory=list)
    passed: float = 0.0
    left: float | None = None

    @property
    def is_over(self) -> bool:
        return self.status is not Status.RUNNING

    def count(self) -> None:
        """Bring ``counts`` up to date."""
        self.counts = dict(sorted(Counter(str(queue.state) for queue in self.queues).items()))

    def change(self, queue: QueueRecord, state: State) -> None:
        """Give one queue another state; it costs the same however many queues there are."""
        counts = Counter(self.counts)
        counts[str(queue.state)] -= 1
        counts[str(state)] += 1
        queue.state = state
        self.counts = {name: number for name, number in sorted(counts.items()) if number > 0}

    def interrupt(self, text: str) -> None:
        """Note that the watch ended before its verdict."""
        self.status = Status.INTERRUPTED
        self.problem = text
