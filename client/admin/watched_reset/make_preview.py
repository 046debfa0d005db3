"""Asks the brokers of a topic and the group's consumers what a reset would do. It changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.forecast.broker_rules import BrokerRules, rules_of
from rewindmq.client.admin.forecast.forecast import QueueFacts, ResetRequest, forecast
from rewindmq.client.admin.groups import shared_id_warnings
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.client.admin.watched_reset.asking import ask_each
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.preview import Preview, QueuePreview
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.client.admin.watched_reset.target import Target, check_range, require_queues
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.message.sysflag import Perm
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.evidence.sample import Sample
from rewindmq.watch.verdict.outlook import outlook_of

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Messages read from each of three places of a queue to estimate the bytes of a reset.
_SAMPLE: Final = 4
_NOT_MOVED: Final = (
    "a reset does not move delayed messages that are not due yet, nor messages of open transactions"
)


_BROADCASTING: Final = "the consumers are broadcasting: they store their own offsets, and ignore the brokers'"
_MUTE: Final = "consumer {} did not answer, so it is not known which queues it has"


async def make_preview(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    *,
    force: bool = True,
    mode: ResetMode | None = None,
    brokers: Brokers | None = None,
) -> Preview:
    """Return what ``carry_out`` would do now, and what a watch will be able to say of it.

    Bytes are estimated from at most twelve messages of each queue.

    Args:
        target: a time for every queue, or offsets; queues without an offset are left out.
        force: False moves a queue only back.
        mode: None: each broker uses its own.
        brokers: asks the brokers; None makes its own.

    Raises:
        ClientError: an offset is out of range, or its queue does not exist.
        ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route; or a broker refused.
        RemotingError: a broker did not answer.
    """
    brokers = Brokers(admin) if brokers is None else brokers
    names = await queues_of(admin, topic)
    sample = await take_sample(admin, topic, group, names, brokers)
    request = ResetRequest(
        group,
        mode,
        force,
        not isinstance(target, int),
        bool(sample.clients),
        sample.is_pulling,
        sample.is_broadcasting,
    )
    cluster = await _ask_cluster(admin, topic, group, sample, brokers)
    if not isinstance(target, int):
        require_queues(topic, target, names)
        names = sorted(target)
    stored = await _stored_offsets(admin, group, names, cluster)

    async def ask(queue: MessageQueue) -> tuple[QueuePreview, QueueFacts]:
        return await _ask_queue(admin, queue, target, request, cluster, stored[queue])

    asked = await ask_each(names, ask)
    expected = forecast(request, [*cluster.rules.values()], [facts for _, facts in asked])

    async def complete(row: QueuePreview) -> QueuePreview:
        offset = expected.offsets.get(row.queue)
        moved = replace(row, stays=offset is None, target=row.target if offset is None else offset)
        return await _read_messages(admin, moved)

    queues = await ask_each([row for row, _ in asked], complete)
    retry_lag = await _retry_lag(admin, group)
    # A group gets its retry topic with its first consumer.
    knows_group = (
        retry_lag is not None
        or any(each.knows_group or each.has_offsets for each in cluster.rules.values())
        or any(row.stored is not None for row in queues)
    )
    obstacles = expected.obstacles
    if request.is_broadcasting:
        obstacles.append(_BROADCASTING)
    notes = _notes(group, queues, retry_lag, knows_group=knows_group, is_online=request.is_online)
    notes += [_MUTE.format(client_id) for client_id in sorted(sample.silent)]
    notes += await _shared_id_notes(admin, group, sample)
    notes += _time_notes(target, cluster.rules, request)
    return Preview(
        topic,
        group,
        target if isinstance(target, int) else None,
        force,
        tuple(queues),
        tuple(sorted(sample.clients)),
        retry_lag or 0,
        tuple(obstacles),
        tuple(notes),
        mode,
        knows_group,
        outlook_of(sample, {row.queue: _watched_target(row) for row in queues if not row.stays}),
    )


def _watched_target(row: QueuePreview) -> int:
    """Return the target, or the first message that still exists if the target has expired."""
    return max(row.target, row.min_offset) if row.is_read else row.target


@dataclass(frozen=True, slots=True)
class _Cluster:
    """What the brokers and consumers told.

    Attributes:
        rules, shapes: by broker name.
        bounds: first offset and end of the queues that producers write to.
        sample: of every queue, as a watch takes it.
    """

    rules: Mapping[str, BrokerRules]
    shapes: Mapping[str, _Shape]
    bounds: Mapping[MessageQueue, tuple[int, int]]
    sample: Sample


async def _shared_id_notes(admin: AdminClient, group: str, sample: Sample) -> list[str]:
    """Return a warning for each client id that several consumers have."""
    connection = await consumers_of(admin, group) if sample.shared else None
    return [] if connection is None else shared_id_warnings(connection)


async def _ask_cluster(
    admin: AdminClient, topic: str, group: str, sample: Sample, brokers: Brokers
) -> _Cluster:
    rules = await rules_of(admin, topic, group, await brokers.of(topic))
    return _Cluster(
        {each.name: each for each in rules},
        await _shapes(admin, topic),
        await _bounds_of(admin, topic),
        sample,
    )


async def _ask_queue(
    admin: AdminClient,
    queue: MessageQueue,
    target: Target,
    request: ResetRequest,
    cluster: _Cluster,
    stored: _Stored,
) -> tuple[QueuePreview, QueueFacts]:
    """Return the row of a queue as if the reset moved it, and what decides whether it does."""
    bounds = cluster.bounds.get(queue)
    least, most = bounds or (await admin.min_offset(queue), await admin.max_offset(queue))
    if not isinstance(target, int):
        check_range(queue, target[queue], least, most)
    mode = request.mode_at(cluster.rules[queue.broker_name])
    offset = await _target_offset(admin, queue, target, most, mode)
    shape = cluster.shapes[queue.broker_name]
    is_read = shape.is_read(queue.queue_id)
    holder = next(iter(cluster.sample.queues[queue].live), None)
    row = QueuePreview(
        queue,
        await _first_offset(admin, queue, least, most) if is_read else least,
        most,
        stored.offset,
        offset,
        consumer=None if holder is None else holder.client_id,
        is_read=is_read,
    )
    facts = QueueFacts(
        queue,
        offset,
        stored.offset,
        is_read,
        shape.is_written(queue.queue_id),
        bool(stored.epoch),
        holder is not None or not cluster.sample.is_complete,
    )
    return row, facts


async def queues_of(admin: AdminClient, topic: str) -> list[MessageQueue]:
    """Return every readable or writable queue of the topic, sorted."""
    route = await admin.examine_topic_route_info(topic)
    return sorted(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        for queue_id in range(max(data.read_queue_nums, data.write_queue_nums))
    )


async def consumers_of(admin: AdminClient, group: str) -> ConsumerConnection | None:
    """Return the group's consumers; None if none is connected, or the group never was."""
    try:
        return await admin.examine_consumer_connection_info(group)
    except ResponseError as error:
        if error.code in (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.TOPIC_NOT_EXIST):
            return None
        raise


async def _bounds_of(admin: AdminClient, topic: str) -> dict[MessageQueue, tuple[int, int]]:
    """Return the first offset and the end of each queue that producers write to."""
    try:
        table = (await admin.examine_topic_stats(topic)).offset_table
    except ClientError:
        # There is no such queue.
        return {}
    return {queue: (bounds.min_offset, bounds.max_offset) for queue, bounds in table.items()}


@dataclass(frozen=True, slots=True)
class _Stored:
    """The group's stored offset in a queue, None if it has none, and the number of its fenced resets."""

    offset: int | None = None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class _Shape:
    """How many queues of the topic a broker has, to read and to write."""

    read: int
    written: int

    def is_read(self, queue_id: int) -> bool:
        return queue_id < self.read

    def is_written(self, queue_id: int) -> bool:
        return queue_id < self.written


async def _shapes(admin: AdminClient, topic: str) -> dict[str, _Shape]:
    """Return the numbers of the topic's queues by broker name."""
    route = await admin.examine_topic_route_info(topic)
    return {
        data.broker_name: _Shape(data.read_queue_nums if data.perm & Perm.READ else 0, data.write_queue_nums)
        for data in route.queue_datas
    }


async def _stored_offsets(
    admin: AdminClient, group: str, queues: Sequence[MessageQueue], cluster: _Cluster
) -> dict[MessageQueue, _Stored]:
    """Return the stored offsets with their epochs.

    Without any stored offset, QUERY_CONSUMER_OFFSET (14) may still return 0. So brokers that return 0 are
    asked for their whole table, as their slaves do.
    """

    async def ask(queue: MessageQueue) -> _Stored:
        here = cluster.rules[queue.broker_name]
        # A broker lists progress in read queues only, and not of consumers that have left the topic.
        is_told = cluster.shapes[here.name].read and not here.has_consumers
        if is_told and not here.lists_topic:
            return _Stored()
        record = await admin.stored_record(group, queue)
        return _Stored() if record is None else _Stored(record.offset, record.epoch or 0)

    found = dict(zip(queues, await ask_each(queues, ask), strict=True))
    doubtful = [queue for queue, stored in found.items() if stored.offset == 0]
    for name in {queue.broker_name for queue in doubtful}:
        with contextlib.suppress(RewindMQError):
            tables = (await admin.broker_consumer_offsets(cluster.rules[name].address)).offset_table
            for queue in doubtful:
                if queue.broker_name == name:
                    offset = tables.get(f"{queue.topic}@{group}", {}).get(queue.queue_id)
                    found[queue] = replace(found[queue], offset=offset)
    return found


async def first_offsets(
    admin: AdminClient, topic: str, queues: Iterable[MessageQueue]
) -> dict[MessageQueue, int]:
    """Return the offset of the first message that still exists in each queue, of readable queues only."""
    bounds = await _bounds_of(admin, topic)
    shapes = await _shapes(admin, topic)
    names = [queue for queue in queues if shapes[queue.broker_name].is_read(queue.queue_id)]

    async def ask(queue: MessageQueue) -> int:
        least, most = bounds.get(queue) or (await admin.min_offset(queue), await admin.max_offset(queue))
        return await _first_offset(admin, queue, least, most)

    return dict(zip(names, await ask_each(names, ask), strict=True))


async def _first_offset(admin: AdminClient, queue: MessageQueue, least: int, most: int) -> int:
    try:
        return await admin.first_message_offset(queue, least, most)
    except ResponseError:
        # The broker does not let its messages be read.
        return least


async def _target_offset(
    admin: AdminClient, queue: MessageQueue, target: Target, end: int, mode: ResetMode
) -> int:
    if not isinstance(target, int):
        return target[queue]
    # Servers of 5.x take every negative time for the end (docs/spec/reset.md D.9).
    if target == MAX_OFFSET_TIMESTAMP or (target < 0 and mode is not ResetMode.CLASSIC):
        return end
    return max(await admin.search_offset(queue, target), 0)


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
        messages = (await admin.pull_messages(row.queue, start, starts[start])).messages
        sizes += [message.store_size for message in messages]
        if start == row.target and messages:
            target_time = messages[0].store_timestamp
    if row.is_read and row.target not in starts and row.min_offset <= row.target < row.max_offset:
        messages = (await admin.pull_messages(row.queue, row.target, 1)).messages
        target_time = messages[0].store_timestamp if messages else None
    return replace(row, average_bytes=sum(sizes) / len(sizes) if sizes else None, target_time=target_time)


async def _retry_lag(admin: AdminClient, group: str) -> int | None:
    """Return how many messages the group has to retry; None if it has no retry topic."""
    try:
        stats = await admin.examine_consume_stats(group)
    except ResponseError as error:
        if error.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return 0
        raise
    return sum(
        max(0, entry.broker_offset - entry.consumer_offset)
        for queue, entry in stats.offset_table.items()
        if queue.topic == retry_topic(group)
    )


def _notes(
    group: str,
    queues: list[QueuePreview],
    retry_lag: int | None,
    *,
    knows_group: bool,
    is_online: bool,
) -> list[str]:
    notes = [_NOT_MOVED]
    if not knows_group:
        notes.append(f"no broker of the topic knows group {group}: check the group's name")
    if retry_lag:
        notes.append(f"{retry_lag} messages wait in {retry_topic(group)}: the reset does not move them")
    if not is_online and not all(row.stays for row in queues):
        notes.append(
            "no consumer is connected: brokers store the offsets, and the next consumer starts there"
        )
    if unread := [row for row in queues if not row.is_read and not row.stays]:
        names = ", ".join(f"{row.queue.broker_name}:{row.queue.queue_id}" for row in unread)
        notes.append(f"no consumer reads {names}: their messages come again only with more read queues")
    return notes


def _time_notes(target: Target, rules: Mapping[str, BrokerRules], request: ResetRequest) -> list[str]:
    """Say what the time means at the brokers, which differs between releases."""
    if not isinstance(target, int) or target in (0, MAX_OFFSET_TIMESTAMP):
        return []
    meanings: dict[str, list[str]] = {}
    for name, each in rules.items():
        meanings.setdefault(_meaning(target, request.mode_at(each), each.is_nearest), []).append(name)
    return [f"the time at {', '.join(names)}: {text}" for text, names in meanings.items()]


def _meaning(timestamp: int, mode: ResetMode, is_nearest: bool | None) -> str:
    if timestamp < 0:
        return "the start of every queue" if mode is ResetMode.CLASSIC else "the end of every queue"
    if is_nearest is None:
        return "as its release searches"
    if is_nearest:
        return "the message nearest to it, and after the last message that message (as RocketMQ up to 5.1.0)"
    return "the first message stored then or later, and else the end (as RocketMQ from 5.1.1 on)"
