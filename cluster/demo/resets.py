"""The resets of the experiment, and what each must lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.client.admin.reset import ResetResult
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.cluster.demo.expectation import SEARCH_RULES
from rewindmq.cluster.demo.journal import Comparison, Delivery
from rewindmq.cluster.demo.names import BROKERS, CONSUMER_GROUP, QUEUES, RESET_WAIT_SECONDS, TOPIC
from rewindmq.cluster.demo.report import QueueRow, ResetRecord
from rewindmq.cluster.demo.stage import Stage
from rewindmq.cluster.demo.timeline import AdminStep, build_timeline
from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

# Notices to one client instance wait for each other (4.9.0 and later): 10 s for each broker.
_SECONDS_TO_RESET: Final = 60.0
_SUSPENSIONS: Final = 5
# A pull that met a suspension is tried again every second (docs/spec/client.md C.12).
_PULLS_BACK_SECONDS: Final = 2.0
_WAKING_SECONDS: Final = 5.0
_MIN_BACKLOG: Final = 80
_BACKLOG_SHARE: Final = 10


@dataclass(frozen=True, slots=True)
class _Command:
    """One reset that was commanded.

    Attributes:
        mark: where its part of the journal begins.
        given_ms: when, ms since the epoch.
        answered_ms: ms until it returned.
        old: the stored offsets before.
    """

    name: str
    mark: int
    given_ms: int
    answered_ms: int
    old: dict[MessageQueue, int]
    result: ResetResult
    admin_steps: list[AdminStep]


async def run_reset(
    stage: Stage, name: str, timestamp: int, store_times: Mapping[MessageQueue, Sequence[int]]
) -> None:
    """Reset an idle group to a moment, and wait until it has consumed everything from there again."""
    rule = SEARCH_RULES[stage.options.profile]
    starts = {queue: rule(times, timestamp) for queue, times in store_times.items()}
    expected = {queue: range(start, len(store_times[queue])) for queue, start in starts.items()}
    command = await _give_command(stage, name, timestamp)
    comparison = await _verify_consumed(stage, f"{name}: redelivered", name, command.mark, expected)
    _conclude(stage, command, starts, comparison)


async def skip_backlog(stage: Stage) -> None:
    """Pile up a backlog, skip it, and see that it is never delivered while what comes later is."""
    name = "skip accumulation"
    await _suspend(stage)
    before, starts = stage.journal.mark(), await stage.ends()
    size = max(_MIN_BACKLOG, stage.options.messages // _BACKLOG_SHARE)
    await _send(stage, "send a backlog while suspended", size)
    ends = await stage.ends()
    command = await _give_command(stage, name, MAX_OFFSET_TIMESTAMP)
    backlog = {queue: range(starts[queue], end) for queue, end in ends.items()}
    stage.figure(name, "backlog stored", size, sum(map(len, backlog.values())))
    stage.figure(
        name, "backlog by stored offsets", size, sum(end - command.old[queue] for queue, end in ends.items())
    )

    fresh = stage.journal.mark()
    await _send(stage, "send as many again", size)
    later = {queue: range(ends[queue], end) for queue, end in (await stage.ends()).items()}
    comparison = await _verify_consumed(stage, f"{name}: later ones consumed", name, fresh, later)
    _verify_skipped(stage, name, before, backlog)
    _conclude(stage, command, ends, comparison)


async def _give_command(stage: Stage, name: str, timestamp: int) -> _Command:
    """Reset the group, and wait until every consumer has come through the notice of every broker."""
    old = await stage.stored_offsets()
    stage.admin_steps.clear()
    mark = stage.journal.mark()
    given_ms = stage.runtime.clock.now_ms()
    result = await stage.admin.reset_offset_by_timestamp(TOPIC, CONSUMER_GROUP, timestamp)
    answered_ms = stage.runtime.clock.now_ms() - given_ms
    steps = list(stage.admin_steps)
    await stage.wait_for(
        f"{name}: notices (220)",
        BROKERS * len(stage.consumers),
        lambda: len(stage.journal.events(mark, Point.RESUMED)),
        _SECONDS_TO_RESET,
    )
    return _Command(name, mark, given_ms, answered_ms, old, result, steps)


async def _verify_consumed(
    stage: Stage, what: str, name: str, mark: int, expected: dict[MessageQueue, range]
) -> Comparison:
    await stage.wait_for(
        what,
        sum(map(len, expected.values())),
        lambda: stage.journal.count_deliveries(mark),
        _SECONDS_TO_RESET,
    )
    await stage.settle()
    return stage.verify_deliveries(name, mark, expected)


def _conclude(
    stage: Stage, command: _Command, starts: Mapping[MessageQueue, int], comparison: Comparison
) -> None:
    """Note what the offsets and the waits were, against what they had to be."""
    requested = command.result.offset_table
    stored = stage.journal.start_offsets(command.mark)
    rows = [
        QueueRow(
            queue,
            command.old.get(queue, -1),
            start,
            requested.get(queue, -1),
            stored.get(queue, -1),
            comparison.per_queue.get(queue, 0),
        )
        for queue, start in sorted(starts.items())
    ]
    entries = stage.journal.entries[command.mark :]
    timeline = build_timeline(command.given_ms, command.admin_steps, entries, stage.broker_names())
    finished_ms = stage.runtime.clock.now_ms() - command.given_ms
    stage.report.resets.append(
        ResetRecord(command.name, command.result.timestamp, command.answered_ms, finished_ms, rows, timeline)
    )
    name = command.name
    right = sum(row.requested == row.expected for row in rows)
    stage.figure(name, "queues requested where expected", QUEUES, right)
    stage.figure(name, "queues stored as requested", QUEUES, sum(row.stored == row.requested for row in rows))
    notices = timeline.notices
    stage.figure(name, "notices (220) carried out", BROKERS * len(stage.consumers), len(notices))
    waits = [notice.wait_ms for notice in notices if notice.wait_ms is not None]
    least = RESET_WAIT_SECONDS * 1000 * stage.options.time_scale
    # Both moments are cut to whole milliseconds, so a wait of exactly the time can read one less.
    stage.figure(name, "shortest wait, ms", int(least) - 1, min(waits, default=0), at_least=True)


async def _send(stage: Stage, what: str, count: int) -> None:
    indexes = stage.producer.send(count)
    sent = stage.producer.sent
    await stage.wait_for(what, count, lambda: len(sent) - indexes.start, 0)


async def _suspend(stage: Stage) -> None:
    """Suspend the consumers, and use up the pulls that the brokers have suspended.

    A suspended consumer does not cancel its pulls: the broker still returns the next message of each queue
    to them. One message to every queue uses these pulls up, so the backlog that is sent later stays at the
    brokers. A pull that was just returning is not sent again, and its queue keeps the message. Then this
    function starts over.

    Raises:
        ClusterError: the pulls were not used up after several tries.
    """
    for _ in range(_SUSPENSIONS):
        await stage.pause(_PULLS_BACK_SECONDS * stage.options.time_scale)
        await _tell_consumers(stage, "suspend")
        if await _answer_suspended_pulls(stage):
            await stage.settle()
            return
        await _tell_consumers(stage, "resume")
        await stage.settle()
    raise ClusterError(f"the consumers' pulls were not suspended at the brokers in {_SUSPENSIONS} tries")


async def _answer_suspended_pulls(stage: Stage) -> bool:
    """Send one message to every queue; False when not all of them were delivered."""
    mark = stage.journal.mark()
    waking = len(stage.producer.send_one_to_each_queue())
    answered = await stage.wait_for(
        "answer the suspended pulls",
        waking,
        lambda: stage.journal.count_deliveries(mark),
        0,
        patience_seconds=_WAKING_SECONDS,
    )
    return answered == waking


async def _tell_consumers(stage: Stage, command: str) -> None:
    """Give every consumer a command, and wait until it is carried out."""
    for consumer in stage.consumers:
        consumer.done.clear()
        consumer.tell(command)
    await stage.wait_for(
        f"{command} the consumers",
        len(stage.consumers),
        lambda: sum(consumer.done.count(command) for consumer in stage.consumers),
        0,
    )


def _verify_skipped(stage: Stage, name: str, before: int, backlog: Mapping[MessageQueue, range]) -> None:
    """Every message of the backlog is skipped, but for those delivered before their queue was dropped.

    Notices are carried out one after another, and each ends with a resumption: until the next one is taken
    up, queues that it concerns are consumed (docs/spec/reset.md D.5).
    """
    dropped: set[MessageQueue] = set()
    early: set[tuple[MessageQueue, int]] = set()
    late: set[tuple[MessageQueue, int]] = set()
    for entry in stage.journal.entries[before:]:
        if isinstance(entry, Delivery):
            if entry.offset in backlog[entry.queue]:
                (late if entry.queue in dropped else early).add((entry.queue, entry.offset))
        elif entry.point is Point.QUEUE_DROPPED and entry.queue is not None:
            dropped.add(entry.queue)
    total = sum(map(len, backlog.values()))
    stage.figure(name, "queues dropped", QUEUES, len(dropped))
    stage.figure(name, "backlog delivered after its queue was dropped", 0, len(late))
    stage.figure(name, "backlog never delivered", total - len(early), total - len(early | late))
