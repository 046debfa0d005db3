"""The rules of a rewind and of a skip, wired together."""

from __future__ import annotations

from typing import Protocol

from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.alone import Alone
from rewindmq.watch.rules.consumption import Consumption
from rewindmq.watch.rules.fetched import FetchedAll
from rewindmq.watch.rules.finished import Finished
from rewindmq.watch.rules.held import Held
from rewindmq.watch.rules.jump import Jump
from rewindmq.watch.rules.not_skipped import NotSkipped
from rewindmq.watch.rules.overtaken import Overtaken
from rewindmq.watch.rules.redelivery import Redelivery
from rewindmq.watch.rules.skipped import Skipped
from rewindmq.watch.rules.stored import Stored
from rewindmq.watch.rules.unapplied import Unapplied
from rewindmq.watch.rules.unmoved import Unmoved
from rewindmq.watch.rules.untouched import Untouched


class Rule(Protocol):
    """Takes in the moments of a queue one by one."""

    def add(self, moment: Moment) -> Finding | None:
        """Return what the moments until now show, or None."""
        ...


class RewindRules:
    """The rules of a rewind.

    Attributes:
        rules: in the order in which each takes in a moment; some use what those before it have seen.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._stored = Stored(case)
        self._redelivery = Redelivery(case)
        jump = Jump(case, self._redelivery)
        self._held = Held(self._redelivery, jump)
        self._consumption = Consumption(case)
        self._unapplied = Unapplied(case)
        self._untouched = Untouched(case, self._stored, self._redelivery, self._consumption)
        self.rules: tuple[Rule, ...] = (
            self._stored,
            Finished(case),
            self._redelivery,
            jump,
            FetchedAll(case, jump),
            self._held,
            Overtaken(case),
            self._unapplied,
            self._untouched,
            Alone(),
        )

    @property
    def is_same_queue_object(self) -> bool:
        """See ``Untouched``."""
        return self._untouched.is_same_queue_object or self._unapplied.is_same_holder

    def add(self, moment: Moment) -> list[Finding]:
        """Take in a moment; return what is found."""
        self._consumption.add(moment)
        return [finding for rule in self.rules if (finding := rule.add(moment)) is not None]

    def doubt(self) -> str | None:
        """Return why the rules decide nothing, in one sentence; None if they have nothing to say."""
        consumption, redelivery = self._consumption, self._redelivery
        if self._held.has_gap:
            return "the redelivery was seen with a gap: a consumer may have left messages out"
        if redelivery.since is not None:
            return "the redelivery has begun, but was not watched for long enough: give more --wait"
        if consumption.has_lost_worker:
            return "a consumer that had the queue has left: it may have consumed the redelivery"
        if consumption.mute_worker is not None:
            return f"consumer {consumption.mute_worker} had the queue, and does not tell how much it consumed"
        if consumption.is_filtered:
            return "the subscription leaves messages out, so the consumed ones cannot be compared"
        if consumption.may_be_all:
            return (
                f"a redelivery of {consumption.needed} messages between two samples cannot be excluded: the"
                f" consumers consumed up to {consumption.most:.0f} messages in the minute after the reset"
            )
        return None


class SkipRules:
    """The rules of a skip."""

    def __init__(self, case: Case) -> None:
        self._stored = _SkipStored(case)
        self._skipped = Skipped(case)
        self.rules: tuple[Rule, ...] = (
            self._stored,
            Unmoved(case),
            self._skipped,
            NotSkipped(case),
            Alone(),
        )

    @property
    def is_same_queue_object(self) -> bool:
        """False: no rule of a skip looks at it."""
        return False

    def add(self, moment: Moment) -> list[Finding]:
        """Take in a moment; return what is found."""
        return [finding for rule in self.rules if (finding := rule.add(moment)) is not None]

    def doubt(self) -> str | None:
        """Return why the rules decide nothing, in one sentence; None if they have nothing to say."""
        if self._skipped.may_be_consumed:
            return "the consumers may have consumed the messages up to the target instead of skipping them"
        return None


class _SkipStored:
    """Finds the stored offset of a skip at its target."""

    def __init__(self, case: Case) -> None:
        self._target = case.target

    def add(self, moment: Moment) -> Finding | None:
        return Finding.AT_TARGET if moment.stored >= self._target else None
