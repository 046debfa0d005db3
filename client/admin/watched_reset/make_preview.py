"""Asks the cluster what a reset would do. It changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.asking import ask_each
from rewindmq.client.admin.reset_target import Target, check_range, require_queues
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.forecast import QueueFacts, ResetRequest, forecast
from rewindmq.client.admin.watched_reset.notes import notes_of
from rewindmq.client.admin.watched_reset.preview import Preview, QueuePreview
from rewindmq.client.admin.watched_reset.survey import Survey, first_offsets, has_settings_elsewhere, survey
from rewindmq.protocol.body.stats import TopicOffset
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.verdict.outlook import outlook_of

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Messages read from each of three places of a queue to estimate the bytes of a reset.
_SAMPLE: Final = 4
_BROADCASTING: Final = "the consumers are broadcasting: they store their own offsets, and ignore the brokers'"


async def make_preview(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    *,
    force: bool = True,
    mode: ResetMode | None = None,
    brokers: Brokers | None = None,
    listed: Mapping[MessageQueue, TopicOffset] | None = None,
) -> Preview:
    """Return what ``ResetAdmin.reset`` would do now, and what a watch will be able to say of it.

    Bytes are estimated from at most twelve messages of each queue.

    Args:
        target: a time for every queue, or offsets; queues without an offset are left out.
        force: False moves a queue only back.
        mode: None: each broker uses its own.
        brokers: asks the brokers; None makes its own.
        listed: what the brokers told of the topic's queues; None asks them.

    Raises:
        ClientError: an offset is out of range, or its queue does not exist.
        ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route; or a broker refused.
        RemotingError: a broker did not answer.
    """
    brokers = Brokers(admin) if brokers is None else brokers
    found = await survey(admin, topic, group, brokers, listed)
    sample = found.sample
    request = ResetRequest(
        group,
        mode,
        force,
        not isinstance(target, int),
        bool(sample.clients),
        sample.is_pulling,
        sample.is_broadcasting,
    )
    names: Sequence[MessageQueue] = found.shape.queues
    if not isinstance(target, int):
        require_queues(topic, target, names)
        names = sorted(target)
    facts = await _ask_queues(admin, names, target, request, found)
    expected = forecast(request, [*found.rules.values()], facts)
    firsts = await first_offsets(admin, found.bounds, [each.queue for each in facts if each.is_read])

    async def show(each: QueueFacts) -> QueuePreview:
        least, most = found.bounds[each.queue]
        offset = expected.offsets.get(each.queue)
        row = QueuePreview(
            each.queue,
            firsts.get(each.queue, least),
            most,
            each.stored,
            each.target if offset is None else offset,
            consumer=next((held.client_id for held in sample.queues[each.queue].live), None),
            stays=offset is None,
            is_read=each.is_read,
        )
        return await _read_messages(admin, row)

    queues = await ask_each(facts, show)
    is_known = (
        any(stats.offset_table for stats in found.progress.values())
        or any(each.knows_group for each in found.rules.values())
        or any(row.stored is not None for row in queues)
        or await has_settings_elsewhere(admin, found, brokers)
    )
    obstacles = expected.obstacles
    if request.is_broadcasting:
        obstacles.append(_BROADCASTING)
    return Preview(
        topic,
        group,
        target if isinstance(target, int) else None,
        force,
        tuple(queues),
        tuple(sorted(sample.clients)),
        found.retry_lag,
        tuple(obstacles),
        tuple(notes_of(found, request, target, queues, is_known=is_known)),
        mode,
        is_known,
        outlook_of(sample, {row.queue: _watched_target(row) for row in queues if not row.stays}),
    )


def _watched_target(row: QueuePreview) -> int:
    """Return the target, or the first message that still exists if the target has expired."""
    return max(row.target, row.min_offset) if row.is_read else row.target


async def _ask_queues(
    admin: AdminClient,
    queues: Sequence[MessageQueue],
    target: Target,
    request: ResetRequest,
    found: Survey,
) -> list[QueueFacts]:
    """Return what decides whether the reset moves each queue, and where to."""
    if not isinstance(target, int):
        for queue in queues:
            check_range(queue, target[queue], *found.bounds[queue])
    stored = await _stored_offsets(admin, request.group, queues, found)

    async def ask(queue: MessageQueue) -> QueueFacts:
        mode = request.mode_at(found.rules[queue.broker_name])
        return QueueFacts(
            queue,
            await _target_offset(admin, queue, target, found.bounds[queue][1], mode),
            stored[queue].offset,
            found.shape.is_read(queue),
            found.shape.is_written(queue),
            bool(stored[queue].epoch),
            bool(found.sample.queues[queue].live) or not found.sample.is_complete,
        )

    return await ask_each(queues, ask)


@dataclass(frozen=True, slots=True)
class _Stored:
    """The group's stored offset in a queue, None if it has none, and the number of its fenced resets."""

    offset: int | None = None
    epoch: int = 0


async def _stored_offsets(
    admin: AdminClient, group: str, queues: Sequence[MessageQueue], found: Survey
) -> dict[MessageQueue, _Stored]:
    """Return the stored offsets with their epochs.

    Without any stored offset, QUERY_CONSUMER_OFFSET (14) may still return 0. So brokers that return 0 are
    asked for their whole table, as their slaves do.
    """

    async def ask(queue: MessageQueue) -> _Stored:
        here = found.rules[queue.broker_name]
        # A broker lists progress in read queues only, and not of consumers that have left the topic.
        is_told = found.shape.read[here.name] and not here.has_consumers
        if is_told and not here.lists_topic:
            return _Stored()
        record = await admin.groups.stored_record(group, queue)
        return _Stored() if record is None else _Stored(record.offset, record.epoch or 0)

    told = dict(zip(queues, await ask_each(queues, ask), strict=True))
    doubtful = [queue for queue, stored in told.items() if stored.offset == 0]
    for name in {queue.broker_name for queue in doubtful}:
        with contextlib.suppress(RewindMQError):
            tables = (await admin.groups.broker_consumer_offsets(found.rules[name].address)).offset_table
            for queue in doubtful:
                if queue.broker_name == name:
                    offset = tables.get(f"{queue.topic}@{group}", {}).get(queue.queue_id)
                    told[queue] = replace(told[queue], offset=offset)
    return told


async def _target_offset(
    admin: AdminClient, queue: MessageQueue, target: Target, end: int, mode: ResetMode
) -> int:
    if not isinstance(target, int):
        return target[queue]
    # Servers of 5.x take every negative time for the end (docs/spec/reset.md D.9).
    if target == MAX_OFFSET_TIMESTAMP or (target < 0 and mode is not ResetMode.CLASSIC):
        return end
    return max(await admin.messages.search_offset(queue, target), 0)


async def _read_messages(admin: AdminClient, row: QueuePreview) -> QueuePreview:
    """Add what the messages show: the mean size of those that the reset moves, the target's store time.

    Messages are read at the target, and at the start, in the middle and at the end of the moved range.
    """
    starts: dict[int, int] = {}
    if row.redelivered + row.skipped:
        stored = row.target if row.stored is None else row.stored
        first = max(min(row.target, stored), row.min_offset)
        end = min(max(row.target, stored), row.max_offset)
        for start in (first, (first + end) // 2, max(first, end - _SAMPLE)):
            starts[start] = min(_SAMPLE, end - start)
    sizes: list[int] = []
    target_time = None
    for start in sorted(starts):
        messages = (await admin.messages.pull_messages(row.queue, start, starts[start])).messages
        sizes += [message.store_size for message in messages]
        if start == row.target and messages:
            target_time = messages[0].store_timestamp
    if row.is_read and row.target not in starts and row.min_offset <= row.target < row.max_offset:
        messages = (await admin.messages.pull_messages(row.queue, row.target, 1)).messages
        target_time = messages[0].store_timestamp if messages else None
    return replace(row, average_bytes=sum(sizes) / len(sizes) if sizes else None, target_time=target_time)
