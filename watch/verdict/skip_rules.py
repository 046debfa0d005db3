"""The rules of a skip, wired together."""

from __future__ import annotations

from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.alone import Alone
from rewindmq.watch.rules.held import HOLD
from rewindmq.watch.rules.not_skipped import NotSkipped
from rewindmq.watch.rules.skipped import Skipped
from rewindmq.watch.rules.stored import Stored
from rewindmq.watch.rules.unmoved import Unmoved
from rewindmq.watch.verdict.rule import Rule, waits_for_consumer


class SkipRules:
    """The rules of a skip."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._skipped = Skipped(case)
        self.rules: tuple[Rule, ...] = (
            Stored(case),
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

    def doubt(self, moment: Moment) -> str | None:
        """Return why the rules decide nothing, in one sentence; None if they have nothing to say."""
        if not self._case.is_known:
            return "right before the reset, the broker or a consumer did not answer"
        if not self._skipped.may_be_consumed:
            return None
        passing = self._skipped.passing
        consumed = "an unknown number" if passing.consumed is None else f"up to {passing.consumed:.0f}"
        return (
            f"the consumers may have consumed the {passing.skipped} messages up to the target instead of"
            f" skipping them: they consumed {consumed} in the minute around the reset"
        )

    def waits_for(self, moment: Moment) -> str:
        """Return what the next state needs, in one sentence."""
        if not moment.seen.live:
            return waits_for_consumer(moment)
        since, target = self._skipped.since, self._case.target
        if since is None:
            return f"stored offset and consumers to be at the target, {target}: {moment.stored} is stored"
        left = since + HOLD - moment.seconds
        if left > 0:
            return f"{left:.0f} s more at the target, {target}"
        return f"rates of the consumers below the {self._skipped.passing.skipped} messages of the skip"

    def figures(self, finding: Finding, moment: Moment) -> str:
        """Return the figures of a loss; "" if the offsets say it all."""
        return f"{moment.stored} is stored" if finding is Finding.UNTOUCHED else ""
