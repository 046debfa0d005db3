"""The resets of the experiment, and the checks of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.client.admin.reset_result import ResetResult
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.cluster.demo.expectation import SEARCH_RULES
from rewindmq.cluster.demo.journal import DeliveryCounts, DemoDelivery
from rewindmq.cluster.demo.names import BROKERS, CONSUMER_GROUP, QUEUES, RESET_WAIT_SECONDS, TOPIC
from rewindmq.cluster.demo.report import DemoReset, QueueRow
from rewindmq.cluster.demo.stage import DemoStage
from rewindmq.cluster.demo.timeline import AdminStep, build_timeline
from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

# A client applies reset notifications one after another (4.9.0 and later): 10 s for each broker.
_SECONDS_TO_RESET: Final = 60.0
_SUSPENSIONS: Final = 5
# A pull that finds the consumer suspended is tried again every second (docs/spec/client.md C.12).
_PULLS_SENT_SECONDS: Final = 2.0
_PULLS_COMPLETED_SECONDS: Final = 5.0
_MIN_BACKLOG: Final = 80
_BACKLOG_SHARE: Final = 10


@dataclass(frozen=True, slots=True)
class _Command:
    """A reset command that has returned.

    Attributes:
        mark: the journal's position at the command.
        given_ms: time of the command, ms since the epoch.
        answered_ms: ms until the command returned.
        old: the group's stored offsets before the reset.
    """

    name: str
    mark: int
    given_ms: int
    answered_ms: int
    old: dict[MessageQueue, int]
    timestamp: int
    result: ResetResult
    admin_steps: list[AdminStep]


async def run_reset(
    stage: DemoStage, name: str, timestamp: int, store_times: Mapping[MessageQueue, Sequence[int]]
) -> None:
    """Reset an idle group to a timestamp, and wait until it has consumed all messages from there again."""
    rule = SEARCH_RULES[stage.options.profile]
    starts = {queue: rule(times, timestamp) for queue, times in store_times.items()}
    expected = {queue: range(start, len(store_times[queue])) for queue, start in starts.items()}
    command = await _command_reset(stage, name, timestamp)
    comparison = await _verify_consumed(stage, f"{name}: redelivered", name, command.mark, expected)
    _record_reset(stage, command, starts, comparison)


async def skip_backlog(stage: DemoStage) -> None:
    """Make a backlog and skip it; check that only messages sent after the skip are delivered."""
    name = "skip accumulation"
    await _suspend(stage)
    before, starts = stage.journal.mark(), await stage.ends()
    size = max(_MIN_BACKLOG, stage.options.messages // _BACKLOG_SHARE)
    await _send(stage, "send a backlog while suspended", size)
    ends = await stage.ends()
    command = await _command_reset(stage, name, MAX_OFFSET_TIMESTAMP)
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
    _record_reset(stage, command, ends, comparison)


async def _command_reset(stage: DemoStage, name: str, timestamp: int) -> _Command:
    """Reset the group, and wait until every consumer has applied the reset notification of every broker."""
    old = await stage.stored_offsets()
    stage.admin_steps.clear()
    mark = stage.journal.mark()
    given_ms = stage.runtime.clock.now_ms()
    result = await stage.admin.resets.reset(TOPIC, CONSUMER_GROUP, timestamp, write=False)
    answered_ms = stage.runtime.clock.now_ms() - given_ms
    steps = list(stage.admin_steps)
    await stage.wait_for(
        f"{name}: notifications",
        BROKERS * len(stage.consumers),
        lambda: len(stage.journal.events(mark, Point.RESUMED)),
        _SECONDS_TO_RESET,
    )
    return _Command(name, mark, given_ms, answered_ms, old, timestamp, result, steps)


async def _verify_consumed(
    stage: DemoStage, what: str, name: str, mark: int, expected: dict[MessageQueue, range]
) -> DeliveryCounts:
    await stage.wait_for(
        what,
        sum(map(len, expected.values())),
        lambda: stage.journal.count_deliveries(mark),
        _SECONDS_TO_RESET,
    )
    await stage.settle()
    return stage.verify_deliveries(name, mark, expected)


def _record_reset(
    stage: DemoStage, command: _Command, starts: Mapping[MessageQueue, int], comparison: DeliveryCounts
) -> None:
    """Add the reset to the report, and compare its offsets and waits with the expected ones."""
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
        DemoReset(command.name, command.timestamp, command.answered_ms, finished_ms, rows, timeline)
    )
    name = command.name
    right = sum(row.requested == row.expected for row in rows)
    stage.figure(name, "queues requested where expected", QUEUES, right)
    stage.figure(name, "queues stored as requested", QUEUES, sum(row.stored == row.requested for row in rows))
    notifications = timeline.notifications
    stage.figure(name, "reset notifications applied", BROKERS * len(stage.consumers), len(notifications))
    waits = [notification.wait_ms for notification in notifications if notification.wait_ms is not None]
    least = RESET_WAIT_SECONDS * 1000 * stage.options.time_scale
    # Start and end are cut to whole milliseconds, so the difference may be one less than the wait.
    stage.figure(name, "shortest wait, ms", int(least) - 1, min(waits, default=0), at_least=True)


async def _send(stage: DemoStage, what: str, count: int) -> None:
    indexes = stage.producer.send(count)
    sent = stage.producer.sent
    await stage.wait_for(what, count, lambda: len(sent) - indexes.start, 0)


async def _suspend(stage: DemoStage) -> None:
    """Suspend the consumers, and complete the pulls that the brokers have suspended for them.

    A suspended consumer does not cancel its pulls: each queue's suspended pull still returns the next
    message. One message to every queue completes them, so that the backlog sent afterwards stays at the
    brokers. If a pull has returned before the suspension, its consumer does not send the next pull, and the
    message stays undelivered. In that case the consumers resume, and the function tries again.

    Raises:
        ClusterError: too many attempts failed.
    """
    for _ in range(_SUSPENSIONS):
        await stage.pause(_PULLS_SENT_SECONDS * stage.options.time_scale)
        await _command_consumers(stage, "suspend")
        if await _complete_suspended_pulls(stage):
            await stage.settle()
            return
        await _command_consumers(stage, "resume")
        await stage.settle()
    raise ClusterError(f"the brokers did not have all pulls suspended in {_SUSPENSIONS} attempts")


async def _complete_suspended_pulls(stage: DemoStage) -> bool:
    """Send one message to every queue; return True if all of them were delivered."""
    mark = stage.journal.mark()
    sent = len(stage.producer.send_one_to_each_queue())
    delivered = await stage.wait_for(
        "complete the suspended pulls",
        sent,
        lambda: stage.journal.count_deliveries(mark),
        0,
        extra_seconds=_PULLS_COMPLETED_SECONDS,
    )
    return delivered == sent


async def _command_consumers(stage: DemoStage, command: str) -> None:
    """Send every consumer a command, and wait until each has carried it out."""
    for consumer in stage.consumers:
        consumer.done.clear()
        consumer.send_command(command)
    await stage.wait_for(
        f"{command} the consumers",
        len(stage.consumers),
        lambda: sum(consumer.done.count(command) for consumer in stage.consumers),
        0,
    )


def _verify_skipped(stage: DemoStage, name: str, before: int, backlog: Mapping[MessageQueue, range]) -> None:
    """Check that no message of the backlog is delivered after its queue was dropped.

    A consumer applies reset notifications one after another and resumes after each. Until it applies the next
    one, it consumes the queues that the next one names (docs/spec/reset.md D.5).
    """
    dropped: set[MessageQueue] = set()
    early: set[tuple[MessageQueue, int]] = set()
    late: set[tuple[MessageQueue, int]] = set()
    for entry in stage.journal.entries[before:]:
        if isinstance(entry, DemoDelivery):
            if entry.offset in backlog[entry.queue]:
                (late if entry.queue in dropped else early).add((entry.queue, entry.offset))
        elif entry.point is Point.QUEUE_DROPPED and entry.queue is not None:
            dropped.add(entry.queue)
    total = sum(map(len, backlog.values()))
    stage.figure(name, "queues dropped", QUEUES, len(dropped))
    stage.figure(name, "backlog delivered after its queue was dropped", 0, len(late))
    stage.figure(name, "backlog never delivered", total - len(early), total - len(early | late))
