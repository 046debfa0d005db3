"""``resetOffsetByTime --watch``: resets a group, and prints what becomes of the reset in each queue."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.commands.reset_preview import aim_text
from rewindmq.client.admin.reset_target import Target
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.preview import Preview
from rewindmq.client.admin.watched_reset.run import Began, Repair, ResetVerdict, run_watched
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.evidence.sample import name_of
from rewindmq.watch.verdict.queue_watch import QueueWatch
from rewindmq.watch.verdict.reset_watch import Change, Waiting
from rewindmq.watch.verdict.states import State

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Exit codes.
LOST: Final = 3
UNKNOWN: Final = 4
# Protocol seconds without a change after which a line says what the watch waits for.
_REMIND_AFTER: Final = 10.0


async def watch_reset(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    *,
    force: bool,
    mode: ResetMode | None,
    patience: float,
    times: int,
    preview: Preview | None = None,
    brokers: Brokers | None = None,
) -> AsyncGenerator[Printed]:
    """Carry the reset out; yield a line for each change and repair, and a last table.

    The arguments are those of ``run_watched``.

    Raises:
        ClientError, ResponseError, RemotingError: see ``run_watched``.
    """
    timestamp = target if isinstance(target, int) else None
    running = run_watched(
        admin,
        topic,
        group,
        target,
        force=force,
        mode=mode,
        patience=patience,
        times=times,
        remind_after=_REMIND_AFTER,
        preview=preview,
        brokers=brokers,
    )
    async with contextlib.aclosing(running) as items:
        async for item in items:
            if isinstance(item, Began):
                text = f"reset group[{group}], topic[{topic}], {aim_text(timestamp)}"
                lines = [f"{text}, queues accepted: {len(item.queues)}"]
                yield Printed([*lines, *(f"EVIDENCE: {outlook}" for outlook in item.outlooks)], None)
            elif isinstance(item, Change):
                yield Printed([change_text(item)], {"change": queue_data(item.watch)})
            elif isinstance(item, Waiting):
                yield Printed([_waiting(item)], None)
            elif isinstance(item, Repair):
                yield _repair(item)
            else:
                yield _summary(topic, group, timestamp, item)


def _repair(item: Repair) -> Printed:
    names = ", ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in item.queues)
    if item.failure is None:
        modes = ", ".join(f"{broker}={mode}" for broker, mode in sorted(item.modes.items()))
        text = f"repair {item.number}: reset {names} again, mode[{modes}]"
    else:
        text = f"repair {item.number}: {names} cannot be reset again: {item.failure}"
    data = {
        "number": item.number,
        "queues": [{"brokerName": queue.broker_name, "queueId": queue.queue_id} for queue in item.queues],
        "modes": dict(item.modes),
        "failure": item.failure,
    }
    return Printed([text], {"repair": data})


def _waiting(waiting: Waiting) -> str:
    first = waiting.open[0]
    return (
        f"{waiting.seconds:6.1f} s  {len(waiting.open)} of {waiting.count} queues undecided,"
        f" {waiting.left:.0f} s left; {name_of(first.queue)} is {first.state}, stored {first.stored},"
        f" and waits for {first.waits_for}"
    )


def change_text(change: Change) -> str:
    """Return the line of a queue's new state."""
    watch = change.watch
    text = (
        f"{change.seconds:6.1f} s  {watch.queue.broker_name}:{watch.queue.queue_id}  {change.state:<12}  "
        f"stored {watch.stored}, target {watch.target}, before {watch.old}"
    )
    if watch.reason:
        text += f": {watch.reason}"
    if watch.races:
        text += f" (as in {', '.join(watch.races)})"
    return text


def _summary(topic: str, group: str, timestamp: int | None, verdict: ResetVerdict) -> Printed:
    code = {State.PROVEN: 0, State.LOST: LOST}.get(verdict.state, UNKNOWN)
    counts = Counter(str(queue.state) for queue in verdict.queues)
    parts = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    data = {
        "group": group,
        "topic": topic,
        "timestamp": timestamp,
        "verdict": str(verdict.state),
        "repairs": verdict.repairs,
        "queues": [queue_data(queue) for queue in verdict.queues],
    }
    return Printed([f"verdict: {verdict.state} ({parts or 'no queue'})"], data, code)


def queue_data(watch: QueueWatch) -> dict[str, Any]:
    """Return a queue's state for JSON."""
    return {
        "brokerName": watch.queue.broker_name,
        "queueId": watch.queue.queue_id,
        "state": str(watch.state),
        "seconds": round(watch.since, 1),
        "beforeOffset": watch.old,
        "targetOffset": watch.target,
        "storedOffset": watch.stored,
        "consumer": watch.consumer,
        "reason": watch.reason or None,
        "races": list(watch.races),
    }
