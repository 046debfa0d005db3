"""QueueWatch: the state of a watched reset in one queue, and the reason for it."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.clues import Clues
from rewindmq.watch.evidence.group import GroupSample
from rewindmq.watch.evidence.moment import Case, Counted, Moment
from rewindmq.watch.evidence.sample import QueueSample
from rewindmq.watch.finding import Finding
from rewindmq.watch.verdict.races import name_races
from rewindmq.watch.verdict.rewind_rules import RewindRules
from rewindmq.watch.verdict.skip_rules import SkipRules
from rewindmq.watch.verdict.states import FINAL, TRANSITIONS, State

# What consumers show. Those that broadcast keep their own offsets, so it says nothing of the reset.
_OF_CONSUMERS: Final = frozenset(
    {Finding.REDELIVERY, Finding.FETCHED, Finding.FINISHED, Finding.HELD, Finding.PASSED}
)
_ALONE: Final = "no consumer is connected: the stored offset takes effect when one takes the queue"


class QueueWatch:
    """The watched reset of one queue.

    Attributes:
        queue, old, target: see ``Case``.
        state: see ``TRANSITIONS``.
        since: when the state was reached, in seconds after the reset.
        stored: the stored offset of the last sample whose broker answered; None if none did.
        reason: why the state is ``LOST`` or ``UNKNOWN``, in one sentence.
        proof: what shows that the state is ``PROVEN``, in one sentence; else "".
        races: races of docs/race/ that the evidence fits; empty unless ``LOST``.
    """

    def __init__(self, case: Case) -> None:
        self.queue: MessageQueue = case.queue
        self.old, self.target = case.old, case.target
        self.state = State.ACCEPTED
        self.since = 0.0
        self.stored: int | None = None
        self.reason = self.proof = ""
        self.races: tuple[str, ...] = ()
        self._clues = Clues(case)
        self._rules = RewindRules(case, self._clues) if case.is_rewind else SkipRules(case)
        self._last = 0.0
        self._moment: Moment | None = None
        self._is_after_gap = False

    @property
    def is_over(self) -> bool:
        return self.state in FINAL

    @property
    def is_rewind(self) -> bool:
        return self.target < self.old

    @property
    def consumer(self) -> str | None:
        """The consumer that has the queue, by the last sample."""
        return self._clues.consumer

    @property
    def waits_for(self) -> str:
        """What the next state needs, in one sentence; "" if there is none."""
        if self.is_over:
            return ""
        if self._is_after_gap:
            return f"an answer of {self.queue.broker_name}: {self._clues.absence}"
        return "the first sample" if self._moment is None else self._rules.waits_for(self._moment)

    def add(
        self,
        seconds: float,
        seen: QueueSample,
        group: GroupSample,
        counted: Counted,
    ) -> bool:
        """Take in the queue's part of a sample; return True if the state has changed.

        Args:
            seconds: after the reset.
            counted: what the broker's counts show.
        """
        if self.is_over:
            return False
        if seen.stored is None:
            self._is_after_gap = True
            self._clues.note_absence(seconds)
            return False
        self.stored = seen.stored
        moment = Moment(seconds, self._last, seen.stored, seen, group, counted, self._is_after_gap)
        self._moment = moment
        self._last, self._is_after_gap = seconds, False
        self._clues.add(moment)
        findings = self._rules.add(moment)
        if self._clues.is_broadcasting:
            findings = [finding for finding in findings if finding not in _OF_CONSUMERS]
        before = self.state
        for finding in findings:
            self._apply(finding, seconds)
        return self.state is not before

    def end(self, seconds: float) -> bool:
        """Give up; return True if the state has changed."""
        return not self.is_over and self._apply(Finding.OVER, seconds)

    def _apply(self, finding: Finding, seconds: float) -> bool:
        after = TRANSITIONS[self.state].get(finding)
        if after is None:
            return False
        if after is State.LOST:
            figures = self._rules.figures(finding, self._moment) if self._moment else ""
            self.reason = f"{finding}: {figures}" if figures else str(finding)
            self.races = name_races(
                self._clues,
                has_jumped=finding is Finding.JUMPED,
                is_same_queue_object=self._rules.is_same_queue_object,
            )
        elif after is State.PROVEN:
            self.proof = str(finding)
        elif after is State.UNKNOWN:
            self.reason = _ALONE if finding is Finding.ALONE else self._doubt()
        self.state, self.since = after, seconds
        return True

    def _doubt(self) -> str:
        if self._clues.broker_was_away:
            return f"{self._clues.absence}: reset again when {self.queue.broker_name} answers"
        if self._clues.shared:
            names = ", ".join(sorted(self._clues.shared))
            return (
                f"several consumers have the client id {names}, and a broker asks only one of them: give each"
                " an instance name of its own"
            )
        if self.consumer is None:
            return (
                f"no consumer has the queue: the stored offset, {self.stored}, takes effect when one takes it"
            )
        doubt = self._moment and self._rules.doubt(self._moment)
        return doubt or f"consumer {self.consumer} has not begun the redelivery: give more --wait"
