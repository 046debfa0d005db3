"""Outlook: what a watch will be able to say of a reset, from the sample right before it.

It holds for a reset that is kept, if the group and its consumers stay as they are in the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.moment import SETTLED, Case
from rewindmq.watch.evidence.position import low_of
from rewindmq.watch.evidence.sample import Sample, name_of
from rewindmq.watch.rules.fetched import FetchCount
from rewindmq.watch.rules.held import HOLD
from rewindmq.watch.rules.minute import LATEST
from rewindmq.watch.rules.skipped import Passing
from rewindmq.watch.verdict.reset_watch import case_of

# Names that a sentence lists; the others are counted.
_NAMED: Final = 4


_IF_FILTERED: Final = f", or some {SETTLED:.0f} s after the reset if the subscription leaves all of them out"


class Promise(StrEnum):
    """How a kept reset of a queue ends."""

    PROVEN = "proven"
    DEPENDS = "depends"
    UNKNOWN = "unknown"


class Evidence(StrEnum):
    """What decides whether a kept reset is proven."""

    UNMOVED = "nothing to move"
    REWINDS = "what the broker hands out"
    COUNT = "the broker's count of fetched messages"
    MINUTE = "the broker's count of the minute after the reset"
    REDELIVERY = "a redelivery that samples see"
    SKIP = "how much the consumers consume"
    SEVERAL_HOLDERS = "several consumers in the queue"
    BROADCASTING = "broadcasting consumers"
    NO_CONSUMER = "no connected consumer"
    NO_HOLDER = "no consumer in the queue"
    SILENT_CONSUMER = "a consumer that does not answer"
    SHARED_ID = "a client id of several consumers"
    NOT_TOLD = "a broker that does not answer"


PROMISES: Final[Mapping[Evidence, Promise]] = MappingProxyType(
    dict.fromkeys(Evidence, Promise.UNKNOWN)
    | dict.fromkeys((Evidence.UNMOVED, Evidence.REWINDS, Evidence.COUNT), Promise.PROVEN)
    | dict.fromkeys(
        (Evidence.MINUTE, Evidence.REDELIVERY, Evidence.SKIP, Evidence.SEVERAL_HOLDERS), Promise.DEPENDS
    )
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What can be known of some queues.

    Attributes:
        queues: sorted.
        promise: how a kept reset of them ends.
        where: the brokers, or the queues if these are not all that the reset moves there.
        text: the evidence and the verdict, in one sentence.
    """

    queues: tuple[MessageQueue, ...]
    evidence: Evidence
    promise: Promise
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def outlook_of(before: Sample, targets: Mapping[MessageQueue, int]) -> tuple[Outlook, ...]:
    """Return what a watch of this reset will be able to say, the same for many queues together.

    Args:
        before: a sample of every queue of the topic.
        targets: target offset of each queue that the reset moves.
    """
    count = FetchCount(before, targets)
    found: dict[tuple[Evidence, str], list[Case]] = {}
    for queue, target in sorted(targets.items()):
        case = case_of(before, queue, target)
        found.setdefault(_evidence(case, before, count), []).append(case)
    outlooks = []
    for (evidence, details), cases in found.items():
        queues = tuple(case.queue for case in cases)
        text = _TEXTS[evidence](details or (_skip_text(cases, before) if evidence is Evidence.SKIP else ""))
        outlooks.append(Outlook(queues, evidence, PROMISES[evidence], _where(queues, targets), text))
    return tuple(outlooks)


def _evidence(case: Case, before: Sample, count: FetchCount) -> tuple[Evidence, str]:
    """Return the evidence for one queue, and what its sentence names."""
    live = case.before.live
    if case.before.stored is None:
        return Evidence.NOT_TOLD, ""
    if case.target == case.old and all(low_of(position) >= case.target for position in live):
        return Evidence.UNMOVED, ""
    if before.is_broadcasting:
        return Evidence.BROADCASTING, ""
    if not live:
        return _without_holder(before)
    if len(live) > 1:
        return Evidence.SEVERAL_HOLDERS, _listed([position.client_id for position in live])
    return _of_rewind(case, before, count) if case.is_rewind else (Evidence.SKIP, _why_not_compared(before))


def _of_rewind(case: Case, before: Sample, count: FetchCount) -> tuple[Evidence, str]:
    broker, stored = case.queue.broker_name, case.before.stored
    if broker in before.rewinders and stored is not None and stored > case.target:
        return Evidence.REWINDS, _IF_FILTERED if before.is_filtered else ""
    if broker in count.brokers and not before.is_filtered:
        return Evidence.COUNT, ""
    is_counted = broker in count.minutes and broker in before.fetched and not before.is_filtered
    evidence = Evidence.MINUTE if is_counted else Evidence.REDELIVERY
    return evidence, _why_not_counted(broker, before, count)


def _without_holder(before: Sample) -> tuple[Evidence, str]:
    if before.shared:
        return Evidence.SHARED_ID, _listed(sorted(before.shared))
    if before.silent:
        return Evidence.SILENT_CONSUMER, _listed(sorted(before.silent))
    if not before.is_complete:
        return Evidence.NOT_TOLD, "consumers"
    if not before.clients:
        return Evidence.NO_CONSUMER, ""
    return Evidence.NO_HOLDER, "pulling" if before.is_pulling else ""


def _why_not_compared(before: Sample) -> str:
    """Return why what the consumers consume cannot be compared with a skip; "" if it can."""
    if before.is_filtered:
        return "unknown, because the subscription leaves out messages of the topic"
    if untold := before.clients - before.consumed.keys():
        return f"unknown unless consumer {_listed(sorted(untold))} tells how much it consumes"
    return ""


def _skip_text(cases: Sequence[Case], before: Sample) -> str:
    """Compare skips with the rates of the last minute."""
    skipped = sorted(Passing(case).skipped for case in cases)
    least = f"{skipped[0]}" if skipped[0] == skipped[-1] else f"{skipped[0]} to {skipped[-1]} by queue"
    consumed = sum(before.consumed.values())
    return (
        f"proven {HOLD:.0f} s after it is applied if the consumers consume fewer messages in the minute"
        f" around it than it leaves out ({least}; in the last minute, at most {consumed:.0f}), and else"
        " unknown"
    )


def _why_not_counted(broker: str, before: Sample, count: FetchCount) -> str:
    if broker in before.rewinders:
        return "the target is not below the stored offset, so the broker does not note the redelivery"
    if before.is_filtered:
        return "the subscription leaves out messages of the topic, so the fetched ones cannot be counted"
    return count.obstacles.get(broker, "the broker does not note what it hands out again")


_TEXTS: Final[Mapping[Evidence, Callable[[str], str]]] = MappingProxyType(
    {
        Evidence.UNMOVED: lambda _: "the group is at the target already: proven at once",
        Evidence.REWINDS: lambda more: (
            "the broker tells what it hands out again: proven about 1 s after the last redelivered message is"
            f" consumed{more}"
        ),
        Evidence.COUNT: lambda _: (
            "the broker counts what the group fetches, and the group has fetched nothing for a minute: proven"
            " some 10 s after the redelivery if nothing new arrives"
        ),
        Evidence.MINUTE: lambda why: (
            f"{why}: proven within {LATEST:.0f} s after a classic reset if every queue has more messages to"
            f" redeliver than the broker gets in half a second, or {HOLD:.0f} s after a redelivery that takes"
            " seconds was first seen, and else unknown; preview again when the group has been idle for a"
            " minute"
        ),
        Evidence.REDELIVERY: lambda why: (
            f"{why}: unknown unless the redelivery takes seconds, and then proven {HOLD:.0f} s after it was"
            " first seen; preview again when the group has been idle for a minute"
        ),
        Evidence.SKIP: lambda text: f"a skip, {text}",
        Evidence.SEVERAL_HOLDERS: lambda clients: (
            f"the consumers {clients} have the same queue: unknown unless all but one give it up; preview"
            " again"
        ),
        Evidence.BROADCASTING: lambda _: (
            "the consumers are broadcasting, and keep their own offsets: never proven"
        ),
        Evidence.NO_CONSUMER: lambda _: (
            f"no consumer is connected: unknown after {SETTLED:.0f} s, because the stored offset takes effect"
            " when a consumer takes the queue"
        ),
        Evidence.NO_HOLDER: lambda pulling: (
            "the consumers pull by themselves, and report no queue: unknown or lost"
            if pulling
            else "no consumer has the queue: unknown or lost unless a consumer takes it"
        ),
        Evidence.SILENT_CONSUMER: lambda clients: (
            f"consumer {clients} does not answer GET_CONSUMER_RUNNING_INFO (307), and may have the queue:"
            " unknown"
        ),
        Evidence.SHARED_ID: lambda clients: (
            f"several consumers have the client id {clients}, and a broker asks only one of them: unknown;"
            " give each consumer an instance name of its own"
        ),
        Evidence.NOT_TOLD: lambda what: (
            f"the brokers do not tell the group's {what or 'offsets'}: unknown; preview again when they do"
        ),
    }
)


def _where(queues: Sequence[MessageQueue], targets: Mapping[MessageQueue, int]) -> str:
    return _listed([*_places(queues, targets)])


def _places(queues: Sequence[MessageQueue], targets: Mapping[MessageQueue, int]) -> Iterator[str]:
    """Yield each broker, or its queues if other queues of it are moved, too."""
    moved = Counter(queue.broker_name for queue in targets)
    for broker in dict.fromkeys(queue.broker_name for queue in queues):
        here = [queue for queue in queues if queue.broker_name == broker]
        if moved[broker] == len(here):
            yield broker
        else:
            yield from map(name_of, here)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
