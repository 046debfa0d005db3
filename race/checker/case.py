"""One queue of a reset: collects what is stored, redelivered and pulled, and reports broken laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.race.checker.chain import Chain
from rewindmq.race.checker.verdict import JudgeFrom, Law, Violation
from rewindmq.race.scenario.scenario import Loss

FOUND: Final = "FOUND"
OFFSET_ILLEGAL: Final = "OFFSET_ILLEGAL"


@dataclass(slots=True)
class _Offence:
    """A period in which the stored offset broke a law."""

    index: int
    at: float
    offset: int
    finished_until: int
    writer: str
    latest: int
    is_healed: bool = False


@dataclass(frozen=True, slots=True)
class _Store:
    """An offset stored after the reset started, but before the laws apply to it.

    Attributes:
        follows_new_chain: True if a new chain of pulls began between the start of the reset and this store.
    """

    index: int
    at: float
    offset: int
    writer: str
    follows_new_chain: bool


class QueueCase:
    """Collects the events of one queue in order and reports in the end which laws were broken.

    A reset takes effect on a queue when its target is first stored after the start, or when a consumer first
    pulls from the target. With ``JudgeFrom.ACKNOWLEDGED`` it takes effect at the acknowledgement at the
    latest. Pulls sent from then on, and the messages that they return, are *fresh*; earlier ones are *stale*.

    Args:
        broker_name, queue_id: which queue it is.
        filtered: offsets of messages that the group's subscription does not match.
        handover_seconds: how long two processes may both pull a queue that moves between them.
    """

    __slots__ = (
        "_called",
        "_chains_before",
        "_corrections",
        "_done",
        "_filtered",
        "_handover",
        "_has_started",
        "_is_effective",
        "_is_judged",
        "_judge_from",
        "_offence",
        "_offences",
        "_place",
        "_queue",
        "_reset_step",
        "_second_chain",
        "_skips",
        "_turns",
        "_unjudged",
        "_writer",
        "chains",
        "effect_at",
        "end",
        "finished_until",
        "is_restarted",
        "stored",
        "target",
    )

    def __init__(
        self,
        broker_name: str,
        queue_id: int,
        target: int,
        judge_from: JudgeFrom,
        *,
        filtered: frozenset[int] = frozenset(),
        handover_seconds: float = 25.0,
    ) -> None:
        self.target = target
        self.stored: int | None = None
        self.chains: list[Chain] = []
        # End of the unbroken run of fresh, finished messages that begins at the target.
        self.finished_until = target
        self.is_restarted = False
        self.effect_at = 0.0
        # One past the last known message.
        self.end = 0
        self._queue = (broker_name, queue_id)
        self._place = f"queue {queue_id} of {broker_name}"
        self._judge_from = judge_from
        self._filtered = filtered
        self._handover = handover_seconds
        self._has_started = self._is_effective = self._is_judged = False
        self._turns = 0
        self._writer = ""
        # Index and time of the reset's start; once it is acknowledged, of its acknowledgement.
        self._reset_step = (0, 0.0)
        self._chains_before = 0
        self._unjudged: list[_Store] = []
        # Offsets delivered to a listener since the reset took effect.
        self._called: set[int] = set()
        self._done: set[int] = set()
        self._skips: list[tuple[int, int]] = []
        # Offsets to which a broker corrected a fresh pull.
        self._corrections: set[int] = set()
        self._offence: _Offence | None = None
        self._offences: list[_Offence] = []
        self._second_chain: Violation | None = None

    @property
    def is_effective(self) -> bool:
        """True if the reset has taken effect on this queue."""
        return self._is_effective

    # Events.

    def start(self, index: int, at: float) -> None:
        """Note that the administrator requests the reset."""
        self._has_started = True
        self._reset_step = (index, at)
        self._chains_before = len(self.chains)

    def acknowledge(self, index: int, at: float) -> None:
        """Note that the reset is acknowledged."""
        self._reset_step = (index, at)
        if self._judge_from is JudgeFrom.ACKNOWLEDGED:
            if not self._is_effective:
                self._take_effect(at)
            self._is_judged = True
            self._check(index, at)

    def store(self, index: int, at: float, offset: int, writer: str) -> None:
        """Note that the stored offset is ``offset``.

        ``writer`` names what stored it ("a commit", "a pull", "a reset"); "" if the offset was only observed.
        """
        self.stored = offset
        self._writer = writer
        if self._has_started and writer and offset == self.target:
            if not self._is_effective:
                self._take_effect(at)
            if self._judge_from is JudgeFrom.APPLIED:
                self._is_judged = True
        if self._is_judged:
            self._check(index, at)
        elif self._has_started and writer:
            follows_new_chain = len(self.chains) > self._chains_before
            self._unjudged.append(_Store(index, at, offset, writer, follows_new_chain))

    def pull(self, index: int, at: float, chain: Chain, offset: int) -> None:
        """Note that a pull is sent."""
        if offset == self.target and self._has_started and not self._is_effective:
            self._take_effect(at)
        self._turns += 1
        if self._is_effective:
            if offset <= self.target:
                self.is_restarted = True
            chain.is_stale = False
            if len(self.chains) > 1 and self._second_chain is None:
                self._find_second_chain(index, at, chain)
        else:
            chain.is_stale = True
            chain.stale_until = offset
        chain.turn = self._turns
        chain.latest = at
        chain.offset = offset
        chain.is_waiting = True

    def answer(self, chain: Chain, status: str, following: int, offsets: Sequence[int] | None) -> None:
        """Note a pull's answer; ``offsets`` are those of its messages, None if unknown."""
        asked = chain.offset
        chain.is_waiting = False
        chain.offset = following
        if status == OFFSET_ILLEGAL:
            chain.is_alive = False
            if not chain.is_stale and self.target <= asked <= self.finished_until:
                self._skip(asked, following)
                self._corrections.add(following)
        elif chain.is_stale:
            chain.stale_until = max(chain.stale_until, following)
        elif status != FOUND:
            self._skip(asked, following)
        elif offsets is not None and len(offsets) != following - asked:
            position = asked
            for offset in sorted(offsets):
                self._skip(position, offset)
                position = offset + 1
            self._skip(position, following)

    def call(self, offsets: Sequence[int]) -> None:
        """Note that messages are delivered to a listener."""
        if self._has_started and (self._is_effective or self._judge_from is JudgeFrom.APPLIED):
            self._called.update(offsets)
        self.end = max(self.end, offsets[-1] + 1)

    def finish(self, chain: Chain, offsets: Sequence[int]) -> None:
        """Note that a listener has finished these messages."""
        if not self._has_started:
            return
        done = self._done
        if self._is_effective:
            floor = chain.stale_until
            done.update(offset for offset in offsets if offset >= floor)
            if self.finished_until in done:
                self._advance()
        elif self._judge_from is JudgeFrom.APPLIED:
            # Counts only if the reset never takes effect; ``_take_effect`` clears the set.
            done.update(offset for offset in offsets if offset in self._called)

    # The verdict.

    def conclude(self, index: int, at: float, is_at_rest: bool) -> list[Violation]:
        """Return every violation; ``index`` and ``at`` are those of the last event."""
        if not self._is_judged:
            if not self._has_started:
                return []
            self._advance()
            self._find_decisive_store()
        violations = [self._stored_violation(offence) for offence in self._offences]
        redelivery = self._redelivery_violation(index, at, is_at_rest)
        if redelivery is not None:
            violations.append(redelivery)
        if self._second_chain is not None:
            violations.append(self._second_chain)
        return violations

    def _take_effect(self, at: float) -> None:
        self._is_effective = True
        self.effect_at = at
        self._called.clear()
        self._done.clear()

    def _skip(self, first: int, following: int) -> None:
        if following > first:
            self._skips.append((first, following))
            if first <= self.finished_until < following:
                self._advance()

    def _advance(self) -> None:
        position, done, filtered = self.finished_until, self._done, self._filtered
        moved = True
        while moved:
            moved = False
            while position in done or position in filtered:
                position += 1
                moved = True
            for first, following in self._skips:
                if first <= position < following:
                    position = following
                    moved = True
        self.finished_until = position

    def _is_lawful(self, offset: int) -> bool:
        return self.target <= offset <= self.finished_until or offset in self._corrections

    def _check(self, index: int, at: float) -> None:
        offset = self.stored
        if offset is None:
            return
        offence = self._offence
        if self._is_lawful(offset):
            if offence is not None:
                # Repaired only if another offset was stored, not if the replay reached the wrong one.
                offence.is_healed = offset < offence.latest or offence.latest < self.target
                self._offence = None
        elif offence is None:
            self._offence = _Offence(index, at, offset, self.finished_until, self._writer, offset)
            self._offences.append(self._offence)
        else:
            offence.latest = offset

    def _find_decisive_store(self) -> None:
        """Report a reset that was never applied, at the first unlawful store after a new chain began.

        Without such a store, report it at the first unlawful store, otherwise at the reset itself.
        """
        stored = self.stored
        if stored is None or self._is_lawful(stored):
            return
        signs = [store for store in self._unjudged if not self._is_lawful(store.offset)]
        sign = next((store for store in signs if store.follows_new_chain), signs[0] if signs else None)
        if sign is None:
            sign = _Store(*self._reset_step, stored, "", follows_new_chain=False)
        self._offences.append(
            _Offence(sign.index, sign.at, sign.offset, self.finished_until, sign.writer, stored)
        )

    def _stored_violation(self, offence: _Offence) -> Violation:
        if offence.is_healed or not self.chains:
            # No chain means that no consumer that handles resets pulled the queue.
            loss = Loss.L0
        else:
            loss = Loss.L1 if self.is_restarted and offence.offset > self.target else Loss.L2
        by = f"by {offence.writer}" if offence.writer else "observed"
        what = f"{self._place}: {offence.offset} was stored ({by}) after the reset to {self.target}"
        if not self._is_effective:
            why = "which was never applied"
            if not offence.writer:
                what = f"{self._place}: {offence.offset} stayed stored after the reset to {self.target}"
        elif offence.offset < self.target:
            why = "which lies before it"
        elif offence.finished_until == self.target:
            why = "and no message had been delivered again and finished"
        else:
            why = (
                f"and only the messages before {offence.finished_until} had been delivered again and finished"
            )
        healed = "; a later commit repaired it" if offence.is_healed else ""
        return Violation(Law.STORED, loss, *self._queue, offence.index, offence.at, f"{what}, {why}{healed}")

    def _redelivery_violation(self, index: int, at: float, is_at_rest: bool) -> Violation | None:
        """Report messages that will never be delivered; at rest, also messages that are not delivered yet."""
        stored = self.stored if self.stored is not None else self.target
        living = [chain for chain in self.chains if chain.is_alive]
        missing = [offset for offset in range(self.target, self.end) if self._is_missing(offset)]
        if not missing or not self.chains:
            return None
        reach = min((max(chain.first, chain.stale_until) for chain in living), default=self.end)
        lost = [offset for offset in missing if offset < stored and offset < reach]
        if lost:
            what = f"{_range_text(lost)} not delivered again, and no consumer will pull {_them(lost)}"
            why = f"the stored offset is {stored}, and every live chain of pulls began at {reach} or later"
            if not living:
                why = f"the stored offset is {stored}, and no consumer pulls the queue"
            return Violation(
                Law.REDELIVERED, Loss.L2, *self._queue, index, at, f"{self._place}: {what}: {why}"
            )
        if is_at_rest and living:
            text = (
                f"{self._place}: {_range_text(missing)} not delivered again so far;"
                f" the stored offset is {stored}"
            )
            return Violation(Law.REDELIVERED, Loss.L0, *self._queue, index, at, text)
        return None

    def _is_missing(self, offset: int) -> bool:
        return (
            offset not in self._called
            and offset not in self._filtered
            and not any(first <= offset < following for first, following in self._skips)
        )

    def _find_second_chain(self, index: int, at: float, chain: Chain) -> None:
        for other in self.chains:
            if other is chain or not (other.is_alive and chain.is_alive) or other.turn <= chain.turn:
                continue
            # The chain pulled, then the other did, and now this chain pulls again.
            if other.process != chain.process:
                both = max(chain.began, other.began, self.effect_at)
                if min(at, other.latest) <= both + self._handover:
                    continue
            elif not chain.turn or other.latest < self.effect_at:
                continue
            whose = (
                f"two chains of {chain.process}"
                if chain.process == other.process
                else f"{chain.process} and {other.process}"
            )
            text = (
                f"{self._place}: {whose} pull it alternately, from {other.offset} and from {chain.offset};"
                " neither was dropped"
            )
            self._second_chain = Violation(Law.ONE_CHAIN, Loss.L3, *self._queue, index, at, text)
            return


def _range_text(offsets: Sequence[int]) -> str:
    """Return ``message 5 was``, ``messages 5 to 9 were`` or ``4 messages between 5 and 9 were``."""
    if len(offsets) == 1:
        return f"message {offsets[0]} was"
    if len(offsets) == offsets[-1] - offsets[0] + 1:
        return f"messages {offsets[0]} to {offsets[-1]} were"
    return f"{len(offsets)} messages between {offsets[0]} and {offsets[-1]} were"


def _them(offsets: Sequence[int]) -> str:
    return "it" if len(offsets) == 1 else "them"
