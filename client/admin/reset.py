"""Moving a group: the reset its consumers carry out, and the write past them (``behaviour.md`` D.1, D.8)."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.client.admin.groups import broker_consume_stats
from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.version import LanguageCode


@dataclass(frozen=True, slots=True)
class ResetResult:
    """What every broker of the topic answered to 222.

    It says that each broker computed its targets and queued the notices, not that consumers applied them.

    Attributes:
        offset_table: the offset each queue is asked to go to, sorted by queue.
    """

    topic: str
    group: str
    timestamp: int
    force: bool
    offset_table: dict[MessageQueue, int]


@dataclass(frozen=True, slots=True)
class RollbackStats:
    """One queue of a direct write, with mqadmin's column names.

    Attributes:
        broker_offset: the end of the queue.
        consumer_offset: the group's stored offset before; the queue's start where it had none.
        timestamp_offset: what the timestamp asks for.
        rollback_offset: what is stored now.
    """

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    timestamp_offset: int
    rollback_offset: int


async def reset_offset_by_timestamp(
    remote: AdminRemote, topic: str, group: str, timestamp: int, force: bool = True, is_cpp: bool = False
) -> ResetResult:
    """105, then 222 to one broker after the other.

    Args:
        timestamp: ms since the epoch, -1 for the end of every queue.
        force: False moves a queue only where that moves it back.
        is_cpp: have the consumers told in the form C++ clients read; no other client understands it.

    Raises:
        ResponseError: 17, no route; or the first broker's refusal.
        RemotingError: no answer within 5 s. Like a refusal it ends the loop: brokers reached before it stay
            reset (named in the exception's notes), later ones are not asked.
    """
    header = ResetOffsetRequestHeader(topic=topic, group=group, timestamp=timestamp, is_force=force)
    probe = remote.runtime.probe
    table: dict[MessageQueue, int] = {}
    reset: list[str] = []
    for name, address in await remote.brokers_of(topic):
        command = remote.command(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        if is_cpp:
            command.language = LanguageCode.CPP
        if probe is not None:
            probe(Point.RESET_SENT, {"broker": name, "topic": topic, "group": group, "timestamp": timestamp})
        try:
            answer = await remote.ask_broker(address, command)
        except RewindMQError as error:
            if reset:
                error.add_note(f"already reset: {', '.join(reset)}")
            raise
        if probe is not None:
            probe(Point.RESET_ANSWERED, {"broker": name, "topic": topic, "group": group})
        table.update(decode_body(answer, ResetOffsetBody).offset_table)
        reset.append(name)
    return ResetResult(topic, group, timestamp, force, dict(sorted(table.items())))


async def reset_offset_by_timestamp_old(
    remote: AdminRemote, topic: str, group: str, timestamp: int, force: bool = True
) -> list[RollbackStats]:
    """Write the group's offsets at the brokers, for a group without running consumers.

    Running consumers are not told, and overwrite it with their next commit, 5 s later at most. Differs from
    4.9.4 where the topic has more read than write queues and the group no offsets: that tool fails there,
    this one takes the queue's own bounds.

    Raises:
        ResponseError: 17, no route; or a broker's refusal.
        RemotingError: no answer; queues before it are written already.
    """
    written = []
    for queue, broker_offset, consumer_offset in await _positions(remote, topic, group):
        address = await remote.address_of(queue)
        if timestamp == MAX_OFFSET_TIMESTAMP:
            target = await remote.api.max_offset(address, queue)
        else:
            target = await remote.api.search_offset(address, queue, timestamp)
        stored = consumer_offset
        if force or target <= consumer_offset:
            await remote.api.update_consumer_offset_sync(address, group, queue, target)
            stored = target
        written.append(RollbackStats(queue, broker_offset, consumer_offset, target, stored))
    return written


async def _positions(remote: AdminRemote, topic: str, group: str) -> list[tuple[MessageQueue, int, int]]:
    """End and stored offset of every queue of the topic, sorted by queue."""
    route = await remote.route(topic)
    queue_counts = {queue.broker_name: queue.read_queue_nums for queue in route.queue_datas}
    positions: list[tuple[MessageQueue, int, int]] = []
    for broker in route.broker_datas:
        address = remote.select_address(broker)
        if address is None:
            continue
        stats = await broker_consume_stats(remote, address, group)
        known = [
            (queue, wrapper.broker_offset, wrapper.consumer_offset)
            for queue, wrapper in stats.offset_table.items()
            if queue.topic == topic
        ]
        if not known:
            # The group has no offset in the topic here.
            for queue_id in range(queue_counts.get(broker.broker_name, 0)):
                queue = MessageQueue(topic, broker.broker_name, queue_id)
                end = await remote.api.max_offset(address, queue)
                known.append((queue, end, await remote.api.min_offset(address, queue)))
        positions.extend(known)
    return sorted(positions)
