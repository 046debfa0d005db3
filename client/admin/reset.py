"""Moving a group: the reset its consumers carry out, and the write past them.

Specification: docs/spec/reset.md D.1, D.8.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.client.admin.fenced import fenced_commits_at
from rewindmq.client.admin.groups import broker_consume_stats
from rewindmq.client.admin.remote import AdminBase, AdminRemote
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.reset import InvokeBrokerToResetOffsetResponseHeader, ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.options import parse_choice
from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.version import LanguageCode


@dataclass(frozen=True, slots=True)
class ResetResult:
    """What every broker of the topic answered to 222.

    Under ``classic`` it says that each broker computed its targets and queued the notices, not that consumers
    applied them; under ``server`` that the targets are stored; under ``fenced`` that they cannot be lost.

    Attributes:
        offset_table: the offset each queue is asked to go to, sorted by queue.
        modes: broker to the mode it says it used; None from brokers that do not say, as RocketMQ's.
    """

    topic: str
    group: str
    timestamp: int
    force: bool
    offset_table: dict[MessageQueue, int]
    modes: dict[str, ResetMode | None]


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


class ResetAdmin(AdminBase):
    """Resets groups, and writes offsets past their consumers."""

    async def reset_offset_by_timestamp(
        self,
        topic: str,
        group: str,
        timestamp: int,
        force: bool = True,
        is_cpp: bool = False,
        mode: ResetMode | str | None = None,
    ) -> ResetResult:
        """Have every broker of the topic reset the group (222), one after the other.

        Args:
            timestamp: ms since the epoch, -1 for the end of every queue.
            force: False moves a queue only where that moves it back.
            is_cpp: have the consumers told in the form C++ clients read; no other client understands it.
            mode: how to reset, "classic", "server" or "fenced"; None leaves that to each broker.

        Raises:
            ResponseError: 17, no route; or the first broker's refusal.
            RemotingError: no answer within 5 s. Like a refusal it ends the loop: brokers reached before it
                stay reset (named in the exception's notes), later ones are not asked.
            ClientError: a broker reset in another mode than the one asked for; this ends the loop too.
        """
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=timestamp, is_force=force, reset_mode=_chosen(mode)
        )
        table: dict[MessageQueue, int] = {}
        modes: dict[str, ResetMode | None] = {}
        for name, address in await self._remote.brokers_of(topic):
            try:
                targets, used = await reset_at(self._remote, name, address, header, is_cpp=is_cpp)
            except RewindMQError as error:
                if modes:
                    error.add_note(f"already reset: {', '.join(modes)}")
                raise
            table.update(targets)
            modes[name] = used
        return ResetResult(topic, group, timestamp, force, dict(sorted(table.items())), modes)

    async def reset_offset_of_queue(
        self,
        address: str,
        topic: str,
        group: str,
        queue_id: int,
        *,
        timestamp: int = MAX_OFFSET_TIMESTAMP,
        offset: int | None = None,
        force: bool = True,
        mode: ResetMode | str | None = None,
    ) -> ResetResult:
        """Reset the group in one queue of one broker of ours (222), in mode ``server`` or ``fenced``.

        RocketMQ 5's tool sends a commit (15) of the offset first, and nothing at all for offset 0; this one
        sends 222 alone, whatever the offset. Before that it asks the broker for something RocketMQ does not
        know: in classic mode, RocketMQ would take such a 222 for a reset of the whole topic.

        Specification: docs/spec/reset.md D.9.

        Args:
            address: the broker's.
            timestamp: where to, unless ``offset`` says so.
            force: see ``reset_offset_by_timestamp``; not looked at with ``offset``, nor in mode ``server``.

        Raises:
            ResponseError: the broker refused; a classic one of ours does.
            RemotingError: no answer within 5 s.
            ClientError: it is no broker of ours; it was not asked to reset anything.
        """
        await require_reset_modes(self._remote, address, topic, group)
        header = ResetOffsetRequestHeader(
            topic=topic,
            group=group,
            timestamp=timestamp,
            is_force=force,
            queue_id=queue_id,
            offset=offset,
            reset_mode=_chosen(mode),
        )
        table, used = await reset_at(self._remote, address, address, header)
        return ResetResult(topic, group, timestamp, force, table, {address: used})

    async def reset_offset_by_timestamp_old(
        self, topic: str, group: str, timestamp: int, force: bool = True
    ) -> list[RollbackStats]:
        """Write the group's offsets at the brokers, for a group without running consumers.

        Running consumers are not told, and overwrite it with their next commit, 5 s later at most. Differs
        from 4.9.4 where the topic has more read than write queues and the group no offsets: that tool fails
        there, this one takes the queue's own bounds.

        Raises:
            ResponseError: 17, no route; or a broker's refusal, as of a queue that was reset in fenced mode.
            RemotingError: no answer; queues before it are written already.
        """
        written = []
        for queue, broker_offset, consumer_offset in await _positions(self._remote, topic, group):
            address = await self._remote.address_of(queue)
            if timestamp == MAX_OFFSET_TIMESTAMP:
                target = await self._remote.api.max_offset(address, queue)
            else:
                target = await self._remote.api.search_offset(address, queue, timestamp)
            stored = consumer_offset
            if force or target <= consumer_offset:
                await self._remote.api.update_consumer_offset_sync(address, group, queue, target)
                stored = target
            written.append(RollbackStats(queue, broker_offset, consumer_offset, target, stored))
        return written


async def require_reset_modes(remote: AdminRemote, address: str, topic: str, group: str) -> None:
    """See to it that a broker is one of ours, by asking for what no other knows.

    Raises:
        ResponseError: it refused for another reason.
        ClientError: it is not.
    """
    try:
        await fenced_commits_at(remote, address, group, topic)
    except ResponseError as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        raise ClientError(
            f"the broker at {address} knows no reset modes: in classic mode it would take the reset of one"
            " queue for one of the whole topic, so it was not asked"
        ) from None


async def reset_at(
    remote: AdminRemote, name: str, address: str, header: ResetOffsetRequestHeader, *, is_cpp: bool = False
) -> tuple[dict[MessageQueue, int], ResetMode | None]:
    """222 to one broker: its table, and the mode it named.

    Args:
        name: of the broker, for probes and errors.
    """
    command = remote.command(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
    if is_cpp:
        command.language = LanguageCode.CPP
    probe = remote.runtime.probe
    details = {
        "broker": name,
        "topic": header.topic,
        "group": header.group,
        "timestamp": header.timestamp,
        "mode": _text(header.reset_mode),
    }
    if probe is not None:
        probe(Point.RESET_SENT, details)
    answer = await remote.ask_broker(address, command)
    used = answer.decode_header(InvokeBrokerToResetOffsetResponseHeader).reset_mode
    if probe is not None:
        probe(Point.RESET_ANSWERED, {**details, "mode": _text(used)})
    wanted = header.reset_mode
    if wanted is not None and used is not wanted:
        what = f"says that it reset in mode {used}" if used is not None else "does not say in which mode"
        raise ClientError(
            f"{name} was asked to reset in mode {wanted}, and {what}: the group has been reset there in"
            " another way, with other promises"
        )
    return decode_body(answer, ResetOffsetBody).offset_table, used


def _chosen(mode: ResetMode | str | None) -> ResetMode | None:
    """Raises ClientError for a mode that there is not."""
    return None if mode is None else parse_choice(ResetMode, mode, "mode")


def _text(mode: ResetMode | None) -> str | None:
    return None if mode is None else str(mode)


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
