"""``resetOffsetByTime --watch``: resets a group, and prints what becomes of the reset in each queue."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.commands.reset_preview import aim_text
from rewindmq.client.admin.watched_reset.carry_out import carry_out
from rewindmq.client.admin.watched_reset.make_preview import queues_of
from rewindmq.client.admin.watched_reset.queue_watch import QueueWatch
from rewindmq.client.admin.watched_reset.sample import take_sample
from rewindmq.client.admin.watched_reset.target import Target
from rewindmq.client.admin.watched_reset.watch import Change, ResetWatch, follow
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Exit codes.
LOST: Final = 3
UNKNOWN: Final = 4


async def watch_reset(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    *,
    force: bool,
    mode: ResetMode | None,
    patience: float,
) -> AsyncGenerator[Printed]:
    """Reset the group, or write its offsets; yield a line for each change of a queue, and a last table.

    Raises:
        ClientError: a broker does not tell the stored offsets, so nothing was reset.
        ResponseError, RemotingError: see ``carry_out``.
    """
    queues = await queues_of(admin, topic)
    before = await take_sample(admin, topic, group, queues)
    silent = sorted({item.broker_name for item in queues if before.queues[item].stored is None})
    if silent:
        raise ClientError(
            f"{', '.join(silent)} did not tell the group's stored offsets, so nothing was reset: try again"
        )
    began = admin.runtime.clock.monotonic()
    outcome = await carry_out(admin, topic, group, target, force=force, mode=mode)
    timestamp = target if isinstance(target, int) else None
    watch = ResetWatch(before, outcome.offsets, began)
    accepted = f"queues accepted: {len(watch.queues)}"
    yield Printed([f"reset group[{group}], topic[{topic}], {aim_text(timestamp)}, {accepted}"], None)
    async with contextlib.aclosing(follow(admin, topic, group, watch, patience=patience)) as changes:
        async for change in changes:
            yield Printed([_change(change)], {"change": _data(change.watch)})
    yield _summary(topic, group, timestamp, watch)


def _change(change: Change) -> str:
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


def _summary(topic: str, group: str, timestamp: int | None, watch: ResetWatch) -> Printed:
    code = 0 if watch.is_proven else LOST if watch.lost else UNKNOWN
    verdict = {0: "proven", LOST: "lost", UNKNOWN: "unknown"}[code]
    counts: dict[str, int] = {}
    for queue in watch.queues:
        counts[queue.state] = counts.get(queue.state, 0) + 1
    parts = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    data = {
        "group": group,
        "topic": topic,
        "timestamp": timestamp,
        "verdict": verdict,
        "queues": [_data(queue) for queue in watch.queues],
    }
    return Printed([f"verdict: {verdict} ({parts or 'no queue'})"], data, code)


def _data(watch: QueueWatch) -> dict[str, Any]:
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
