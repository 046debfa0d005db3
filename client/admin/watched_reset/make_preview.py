"""Asks the brokers of a topic and the group's consumers what a reset would do. It changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.groups import shared_id_warnings
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.client.admin.watched_reset.asking import ask_each
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.positions import consumer_positions, positions_of
from rewindmq.client.admin.watched_reset.preview import Preview, QueuePreview
from rewindmq.client.admin.watched_reset.target import Target, check_range, require_queues
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.heartbeat import ConsumeType, MessageModel
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.remoting.slices.run import run_slices

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Messages read from each of three places of a queue to estimate the bytes of a reset.
_SAMPLE: Final = 4
_NOT_MOVED: Final = (
    "a reset does not move delayed messages that are not due yet, nor messages of open transactions"
)


async def make_preview(
    admin: AdminClient, topic: str, group: str, target: Target, *, force: bool = True
) -> Preview:
    """Return what ``carry_out`` would do now.

    The requests are RocketMQ's. Bytes are estimated from at most twelve messages of each queue.

    Args:
        target: a time for every queue, or offsets; queues without an offset are left out.
        force: False moves a queue only back.

    Raises:
        ClientError: an offset is out of range, or its queue does not exist.
        ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route; or a broker refused.
        RemotingError: a broker did not answer.
    """
    connection = await consumers_of(admin, group)
    clients = sorted({client.client_id for client in connection.connection_set}) if connection else []
    reports = await consumer_positions(Brokers(admin), group, clients)
    positions = await run_slices(admin.runtime.timers, positions_of(reports))
    known = (await admin.topic_consume_stats(group, topic, has_offsets=True)).offset_table
    names = await queues_of(admin, topic)
    if not isinstance(target, int):
        require_queues(topic, target, names)
        names = sorted(target)
    bounds = await _bounds_of(admin, topic)

    async def preview(queue: MessageQueue) -> QueuePreview:
        least, most = bounds.get(queue) or (await admin.min_offset(queue), await admin.max_offset(queue))
        if not isinstance(target, int):
            check_range(queue, target[queue], least, most)
        # Without any stored offset, QUERY_CONSUMER_OFFSET (14) may still return 0.
        stored = await admin.stored_offset(group, queue) if queue in known else None
        offset = await _target_offset(admin, queue, target, most)
        if not force and stored is not None:
            offset = min(offset, stored)
        holder = next((held for held in positions.get(queue, ()) if not held.dropped), None)
        row = QueuePreview(
            queue, least, most, stored, offset, consumer=None if holder is None else holder.client_id
        )
        return await _read_messages(admin, row)

    queues = await ask_each(names, preview)
    retry_lag = await _retry_lag(admin, group)
    shared = shared_id_warnings(connection) if connection else []
    return Preview(
        topic,
        group,
        target if isinstance(target, int) else None,
        force,
        tuple(queues),
        tuple(clients),
        retry_lag or 0,
        tuple(_obstacles(group, queues, connection, has_offsets=not isinstance(target, int))),
        (*_notes(group, queues, clients, retry_lag), *shared),
    )


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


async def _target_offset(admin: AdminClient, queue: MessageQueue, target: Target, end: int) -> int:
    if not isinstance(target, int):
        return target[queue]
    if target == MAX_OFFSET_TIMESTAMP:
        return end
    return max(await admin.search_offset(queue, target), 0)


async def _read_messages(admin: AdminClient, row: QueuePreview) -> QueuePreview:
    """Add what the messages show: the mean size of those that the reset moves, the target's store time.

    Messages are read at the target, and at the start, in the middle and at the end of the moved range.
    """
    starts: dict[int, int] = {}
    if row.redelivered + row.skipped:
        stored = row.target if row.stored is None else row.stored
        first, end = max(min(row.target, stored), row.min_offset), max(row.target, stored)
        for start in (first, (first + end) // 2, max(first, end - _SAMPLE)):
            starts[start] = min(_SAMPLE, end - start)
    sizes: list[int] = []
    target_time = None
    for start in sorted(starts):
        messages = (await admin.pull_messages(row.queue, start, starts[start])).messages
        sizes += [message.store_size for message in messages]
        if start == row.target and messages:
            target_time = messages[0].store_timestamp
    if row.target not in starts and row.min_offset <= row.target < row.max_offset:
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


def _obstacles(
    group: str, queues: list[QueuePreview], connection: ConsumerConnection | None, *, has_offsets: bool
) -> list[str]:
    found = []
    if has_offsets:
        if connection is not None:
            found.append("consumers are connected: a reset to offsets needs mode server or fenced")
    elif all(row.stored is None for row in queues):
        found.append(f"group {group} has no stored offset in the topic: brokers refuse to move it")
    elif missing := [f"{row.queue.broker_name}:{row.queue.queue_id}" for row in queues if row.stored is None]:
        found.append(
            f"no stored offset in {', '.join(missing)}: in classic mode, a broker refuses the whole reset"
        )
    if connection is None:
        return found
    if connection.message_model is MessageModel.BROADCASTING:
        found.append("the consumers are broadcasting: they store their own offsets, and ignore the brokers'")
    if connection.consume_type is ConsumeType.CONSUME_ACTIVELY:
        found.append("the consumers pull themselves: in classic mode, they ignore the reset")
    return found


def _notes(group: str, queues: list[QueuePreview], clients: list[str], retry_lag: int | None) -> list[str]:
    notes = [_NOT_MOVED]
    # A group gets its retry topic with its first consumer.
    if retry_lag is None and all(row.stored is None for row in queues):
        notes.append(
            f"no consumer of group {group} has ever connected, and it has no stored offset in the topic:"
            " check the group's name"
        )
    if retry_lag:
        notes.append(f"{retry_lag} messages wait in {retry_topic(group)}: the reset does not move them")
    if not clients:
        notes.append(
            "no consumer is connected: brokers store the offsets, and the next consumer starts there"
        )
    else:
        idle = [f"{row.queue.broker_name}:{row.queue.queue_id}" for row in queues if row.consumer is None]
        if idle:
            notes.append(
                f"no consumer reports {', '.join(idle)}: a classic reset does not reach such a queue"
            )
    return notes
