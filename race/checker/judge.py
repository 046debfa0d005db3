"""The judge: chooses a reset in a history and reports which laws it breaks on which queues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.checker.case import QueueCase
from rewindmq.race.checker.reading import Place, Reading
from rewindmq.race.checker.resets import Issued, issued_resets
from rewindmq.race.checker.verdict import NOTHING_TO_JUDGE, JudgeFrom, Verdict, Violation
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, Lab

# A consumer rebalances every 20 s (docs/spec/client.md C.3); the rest is time for a pull.
HANDOVER_SECONDS: Final = 25.0


def judge(
    history: Iterable[Event],
    *,
    judge_from: JudgeFrom | None = None,
    reset: int = -1,
    is_at_rest: bool = False,
    handover_seconds: float = HANDOVER_SECONDS,
) -> Verdict:
    """Judge a reset by the three laws.

    Losses: ``L1`` if consumption restarted at the target and a higher offset was stored than redelivered.
    ``L2`` if consumption did not restart, or messages from the target on will never be delivered again.
    ``L3`` if two chains pull one queue. ``L0`` if a later commit repaired the stored offset, if no consumer
    took part that handles resets, or if live consumers at rest have not delivered everything although
    nothing is lost. A history without an acknowledged reset breaks no law.

    Args:
        judge_from: None takes the reset's mode: classic is judged from ``APPLIED``, others from
            ``ACKNOWLEDGED``.
        reset: index of the reset among the acknowledged ones, in the order of their start; -1 is the last.
            If a later reset replaces an earlier one's target, judging the earlier one can report a loss.
        is_at_rest: True if nothing more would ever happen, so every message must be delivered.
        handover_seconds: how long two processes may both pull a queue that moves between them, in protocol
            seconds.

    Raises:
        RaceError: the history has no such reset, or an event lacks required details.
    """
    events = list(history)
    issued = choose_reset(events, reset)
    if issued is None:
        return NOTHING_TO_JUDGE
    cases = make_cases(events, issued, judge_from, handover_seconds)
    assert issued.acknowledged is not None
    until = len(events) if issued.until is None else issued.until
    Reading(cases, issued.started, issued.acknowledged).read(events, until)
    violations: list[Violation] = []
    for case in cases.values():
        violations += case.conclude(until - 1, events[until - 1].at, is_at_rest)
    violations.sort(key=lambda violation: violation.index)
    return Verdict(frozenset(violation.loss for violation in violations), tuple(violations))


def choose_reset(events: Sequence[Event], number: int) -> Issued | None:
    """Return the acknowledged reset with this number; None if no reset was acknowledged.

    Raises:
        RaceError: some resets were acknowledged, but not this one.
    """
    try:
        resets = [reset for reset in issued_resets(events) if reset.acknowledged is not None]
    except KeyError as error:
        raise RaceError(f"an event about a reset lacks {error}") from None
    if not resets:
        return None
    if not -len(resets) <= number < len(resets):
        raise RaceError(f"there is no reset {number}; {len(resets)} were acknowledged")
    return resets[number]


def make_cases(
    events: Sequence[Event], issued: Issued, judge_from: JudgeFrom | None, handover_seconds: float
) -> dict[Place, QueueCase]:
    """Return one case for each queue in the reset's targets."""
    if judge_from is None:
        judge_from = JudgeFrom.APPLIED if issued.mode == ResetMode.CLASSIC else JudgeFrom.ACKNOWLEDGED
    filtered = _filtered_offsets(events, issued)
    return {
        (issued.group, broker, issued.topic, queue_id): QueueCase(
            broker,
            queue_id,
            target,
            judge_from,
            filtered=filtered.get((broker, queue_id), _NOTHING),
            handover_seconds=handover_seconds,
        )
        for broker, queue_id, target in issued.targets
    }


_NOTHING: Final[frozenset[int]] = frozenset()


def _filtered_offsets(events: Sequence[Event], issued: Issued) -> dict[tuple[str, int], frozenset[int]]:
    """Return offsets of messages whose tag was never delivered, if messages of another tag were."""
    tags: dict[tuple[str, int, int], str] = {}
    for event in events:
        if event.kind is Lab.MESSAGE_SENT:
            details = event.details
            if details.get("topic") == issued.topic:
                place = (details["broker_name"], details["queue_id"], details["offset"])
                tags[place] = details.get("tag") or ""
    unseen = set(tags.values())
    if len(unseen) < 2:
        return {}
    for event in events:
        if event.kind is Point.LISTENER_CALLED:
            details = event.details
            broker, queue_id = details["broker_name"], details["queue_id"]
            unseen.difference_update(
                tags.get((broker, queue_id, offset), "") for offset in details["offsets"]
            )
    if len(unseen) == len(set(tags.values())):
        return {}
    offsets: dict[tuple[str, int], set[int]] = {}
    for (broker, queue_id, offset), tag in tags.items():
        if tag in unseen:
            offsets.setdefault((broker, queue_id), set()).add(offset)
    return {place: frozenset(found) for place, found in offsets.items()}
