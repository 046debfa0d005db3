"""The rules of a rewind, wired together."""

from __future__ import annotations

from rewindmq.watch.evidence.clues import Clues
from rewindmq.watch.evidence.moment import SETTLED, Case, Moment
from rewindmq.watch.evidence.position import low_of
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.alone import Alone
from rewindmq.watch.rules.consumption import RATES_END, Consumption
from rewindmq.watch.rules.fetched import COUNTED_UNTIL, FetchedAll
from rewindmq.watch.rules.finished import Finished
from rewindmq.watch.rules.held import HOLD, Held
from rewindmq.watch.rules.jump import Jump
from rewindmq.watch.rules.minute import LATEST
from rewindmq.watch.rules.overtaken import Overtaken
from rewindmq.watch.rules.redelivery import Redelivery
from rewindmq.watch.rules.stored import Stored
from rewindmq.watch.rules.unapplied import Unapplied
from rewindmq.watch.rules.untouched import Untouched
from rewindmq.watch.verdict.rule import Rule, waits_for_consumer


class RewindRules:
    """The rules of a rewind.

    Args:
        clues: those of the queue; each moment is added to them before it is added here.

    Attributes:
        rules: in the order in which each takes in a moment; some use what those before it have seen.
    """

    def __init__(self, case: Case, clues: Clues) -> None:
        self._case = case
        self._clues = clues
        self._redelivery = Redelivery(case)
        self._finished = Finished(case)
        self._jump = Jump(clues, self._redelivery)
        self._held = Held(self._redelivery, self._jump)
        self._consumption = Consumption(case)
        self._unapplied = Unapplied(case)
        self._untouched = Untouched(case, clues, self._redelivery, self._consumption)
        self.rules: tuple[Rule, ...] = (
            Stored(case),
            self._finished,
            self._redelivery,
            self._jump,
            FetchedAll(case, clues, self._jump),
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

    def doubt(self, moment: Moment) -> str | None:
        """Return why the rules decide nothing, in one sentence; None if they have nothing to say.

        Args:
            moment: the last one.
        """
        consumption, redelivery = self._consumption, self._redelivery
        if (missing := self._finished.missing(moment.seen)) is not None:
            return f"{missing}; give more --wait, or preview again"
        if self._held.has_gap:
            return (
                f"the redelivery was seen to {redelivery.progress} of {self._case.old} with a gap, in which a"
                f" consumer may have left messages out; {_again(moment)}"
            )
        if redelivery.since is not None:
            return (
                f"the redelivery, at {redelivery.progress} of {self._case.old}, was not contradicted"
                f" for {moment.seconds - redelivery.since:.0f} s, and a proof needs {HOLD:.0f} s:"
                " give more --wait"
            )
        if consumption.has_lost_worker:
            return (
                f"a consumer that had the queue has left, and may have consumed the {self._count} messages of"
                f" the redelivery; {_again(moment)}"
            )
        if consumption.mute_worker is not None:
            return (
                f"consumer {consumption.mute_worker} had the queue, and does not tell how many of the"
                f" {self._count} messages it consumed; {_again(moment)}"
            )
        if consumption.is_filtered:
            return (
                f"the subscription leaves messages out, so the consumed ones cannot be compared with the"
                f" {self._count} of the redelivery"
            )
        if consumption.may_be_all:
            return (
                f"a redelivery of {consumption.needed} messages between two samples cannot be excluded: the"
                f" consumers consumed up to {consumption.most:.0f} messages in the minute after the reset;"
                f" {_again(moment)}"
            )
        return None

    def waits_for(self, moment: Moment) -> str:
        """Return what the next state needs, in one sentence.

        Args:
            moment: the last one.
        """
        case, seen, redelivery = self._case, moment.seen, self._redelivery
        if (missing := self._finished.missing(seen)) is not None:
            return f"the rest of the redelivery: {missing}"
        if not seen.live:
            return waits_for_consumer(moment)
        if self._jump.is_open:
            return f"the next commit: {moment.stored} is stored above messages that a consumer holds"
        if redelivery.since is not None:
            left = max(0.0, redelivery.since + HOLD - moment.seconds)
            return (
                f"{left:.0f} s more without a contradiction: the redelivery was seen to {redelivery.progress}"
                f" of {case.old}"
            )
        if moment.seconds < SETTLED and not self._clues.was_stored:
            return (
                f"a consumer that applies the reset: {moment.stored} is stored, the target is {case.target}"
            )
        if not moment.counted.obstacle and moment.seconds < COUNTED_UNTIL:
            return f"the broker's count of fetched messages, every 10 s, to be that of the {self._count} ones"
        if moment.counted.is_counting:
            left = max(0.0, LATEST - moment.seconds)
            return f"the broker's count of the minute that began in the classic wait, within {left:.0f} s"
        left = max(0.0, RATES_END - moment.seconds)
        return f"a sample that sees the redelivery, or rates that are too low for it within {left:.0f} s"

    def figures(self, finding: Finding, moment: Moment) -> str:
        """Return the figures of a loss; "" if the offsets say it all."""
        rewind, holding = moment.seen.rewind, self._redelivery.holding
        if finding is Finding.JUMPED and holding is not None:
            return f"consumer {holding.client_id} holds those from {low_of(holding)} on"
        if finding is Finding.OVERTAKEN and rewind is not None:
            return f"{rewind.handed_out - rewind.start} of {rewind.end - rewind.start} messages"
        if finding is not Finding.UNTOUCHED:
            return ""
        if self.is_same_queue_object and moment.seen.live:
            return f"consumer {moment.seen.live[0].client_id} has had the queue since before the reset"
        if moment.seen.awaited is not None:
            return f"no consumer has committed the target for {moment.seconds:.0f} s"
        if not moment.seen.live:
            return "no consumer has the queue"
        most = self._consumption.most
        return (
            "" if most is None else f"at most {most:.0f} of {self._consumption.needed} messages were consumed"
        )

    @property
    def _count(self) -> int:
        """Messages of the redelivery."""
        return self._case.old - self._case.target


def _again(moment: Moment) -> str:
    """Return why a redelivery that was too fast to see was not counted, and what to do."""
    obstacle = moment.counted.obstacle
    why = f"it was not counted, because {obstacle}: " if obstacle else ""
    return f"{why}preview again when the group has been idle for a minute"
