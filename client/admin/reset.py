"""Offset resets of groups, and direct writes of their stored offsets.

Specification: docs/spec/reset.md D.1, D.8.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rewindmq.client.admin.fenced import fenced_commits_at
from rewindmq.client.admin.groups import broker_consume_stats
from rewindmq.client.admin.remote import AdminBase, AdminRemote
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.reset import InvokeBrokerToResetOffsetResponseHeader, ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.options import parse_choice
from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.version import LanguageCode


@dataclass(frozen=True, slots=True)
class ResetResult:
    """The responses of all brokers of a topic to INVOKE_BROKER_TO_RESET_OFFSET (222).

    Its meaning depends on the mode. ``classic``: each broker computed its targets and queued the reset
    notifications; consumers have not applied them yet. ``server``: the targets are stored. ``fenced``: the
    targets are stored on disk, and brokers refuse commits of deliveries from before the reset.

    Attributes:
        offset_table: target offset of each queue, sorted by queue.
        modes: broker name to the mode in its response; None for RocketMQ's brokers, which name no mode.
    """

    topic: str
    group: str
    timestamp: int
    force: bool
    offset_table: dict[MessageQueue, int]
    modes: dict[str, ResetMode | None]


@dataclass(frozen=True, slots=True)
class RollbackStats:
    """The result of a direct write for one queue, with mqadmin's column names.

    Attributes:
        broker_offset: the queue's maximum offset.
        consumer_offset: the group's stored offset before the write; the queue's minimum if it had none.
        timestamp_offset: the offset found for the timestamp.
        rollback_offset: the stored offset after the write.
    """

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    timestamp_offset: int
    rollback_offset: int


class ResetAdmin(AdminBase):
    """Resets groups, and writes stored offsets directly."""

    async def reset_offset_by_timestamp(
        self,
        topic: str,
        group: str,
        timestamp: int,
        force: bool = True,
        is_cpp: bool = False,
        mode: ResetMode | str | None = None,
        brokers: Collection[str] | None = None,
    ) -> ResetResult:
        """Reset the group at every broker of the topic, one after the other.

        Each broker gets INVOKE_BROKER_TO_RESET_OFFSET (222). Any error ends the loop: brokers before it stay
        reset, and the exception's notes name them; later brokers get no request.

        Args:
            timestamp: ms since the epoch, -1 for the end of every queue.
            force: False resets a queue only if that moves it back.
            is_cpp: send the reset notifications in the form that C++ clients read; other clients ignore it.
            mode: reset mode "classic", "server" or "fenced"; None: each broker uses its own mode.
            brokers: names of the brokers that get the request; None: all of the topic.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route; or a broker refused.
            RemotingError: no answer within 5 s.
            ClientError: a broker used another mode than ``mode``; or ``mode`` is unknown.
        """
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=timestamp, is_force=force, reset_mode=_parse_mode(mode)
        )
        table: dict[MessageQueue, int] = {}
        modes: dict[str, ResetMode | None] = {}
        for name, address in await self._remote.brokers_of(topic):
            if brokers is not None and name not in brokers:
                continue
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
        """Reset the group in one queue of a RewindMQ broker, in mode ``server`` or ``fenced``.

        The broker gets INVOKE_BROKER_TO_RESET_OFFSET (222), for offset 0, too. RocketMQ 5's tool first
        commits the offset with UPDATE_CONSUMER_OFFSET (15), and sends nothing for offset 0.

        RocketMQ's broker in classic mode would reset the whole topic. ``require_reset_modes`` therefore
        checks the broker first.

        Specification: docs/spec/reset.md D.9.

        Args:
            address: of the broker.
            timestamp: the target in ms, unless ``offset`` is given.
            force: see ``reset_offset_by_timestamp``; ignored with ``offset``, and in mode ``server``.

        Raises:
            ResponseError: the broker refused, as RewindMQ's broker does in mode ``classic``.
            RemotingError: no answer within 5 s.
            ClientError: the broker is not RewindMQ's and got no reset; it used another mode than ``mode``; or
                ``mode`` is unknown.
        """
        await require_reset_modes(self._remote, address, topic, group)
        header = ResetOffsetRequestHeader(
            topic=topic,
            group=group,
            timestamp=timestamp,
            is_force=force,
            queue_id=queue_id,
            offset=offset,
            reset_mode=_parse_mode(mode),
        )
        table, used = await reset_at(self._remote, address, address, header)
        return ResetResult(topic, group, timestamp, force, table, {address: used})

    async def reset_offset_by_timestamp_old(
        self, topic: str, group: str, timestamp: int, force: bool = True
    ) -> list[RollbackStats]:
        """Write the stored offsets of a group without running consumers.

        Running consumers get no notification, and overwrite the offsets with their next commit, at most 5 s
        later. One case differs from 4.9.4: the topic has more read than write queues, and the group no
        offsets. RocketMQ's tool fails then; this method takes the minimum and maximum of each queue.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route; or a broker refused, for example
                because the queue was reset in fenced mode.
            RemotingError: no answer. The exception's notes name the queues whose offsets are written.
        """
        rows: list[RollbackStats] = []
        for queue, broker_offset, consumer_offset in await _positions(self._remote, topic, group):
            try:
                target = await self._write_time(group, queue, timestamp, None if force else consumer_offset)
            except RewindMQError as error:
                written = [row.queue for row in rows if row.rollback_offset == row.timestamp_offset]
                if written:
                    names = ", ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in written)
                    error.add_note(f"already reset: {names}")
                raise
            stored = target if force else min(target, consumer_offset)
            rows.append(RollbackStats(queue, broker_offset, consumer_offset, target, stored))
        return rows

    async def _write_time(self, group: str, queue: MessageQueue, timestamp: int, limit: int | None) -> int:
        """Return the offset of a time; write it as the stored offset unless it is above ``limit``."""
        address = await self._remote.address_of(queue)
        if timestamp == MAX_OFFSET_TIMESTAMP:
            target = await self._remote.api.max_offset(address, queue)
        else:
            target = await self._remote.api.search_offset(address, queue, timestamp)
        if limit is None or target <= limit:
            await self._remote.api.update_consumer_offset_sync(address, group, queue, target)
        return target


async def require_reset_modes(remote: AdminRemote, address: str, topic: str, group: str) -> None:
    """Ensure that a broker knows reset modes: it must handle LIST_FENCED_COMMITS, RewindMQ's own request.

    Raises:
        ResponseError: the broker refused for another reason than an unknown request code.
        ClientError: the broker does not know reset modes.
    """
    try:
        await fenced_commits_at(remote, address, group, topic)
    except ResponseError as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        raise ClientError(
            f"the broker at {address} does not know reset modes: in classic mode it would reset the whole"
            " topic instead of one queue, so no reset was sent"
        ) from None


async def reset_at(
    remote: AdminRemote, name: str, address: str, header: ResetOffsetRequestHeader, *, is_cpp: bool = False
) -> tuple[dict[MessageQueue, int], ResetMode | None]:
    """Send INVOKE_BROKER_TO_RESET_OFFSET (222) to one broker; return the targets and the mode it names.

    Args:
        name: the broker's name, for probes and errors.

    Raises:
        ClientError: the header asks for a mode, and the response names another one or none.
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
        "mode": _mode_text(header.reset_mode),
    }
    if probe is not None:
        probe(Point.RESET_SENT, details)
    answer = await remote.ask_broker(address, command)
    used = answer.decode_header(InvokeBrokerToResetOffsetResponseHeader).reset_mode
    if probe is not None:
        probe(Point.RESET_ANSWERED, {**details, "mode": _mode_text(used)})
    wanted = header.reset_mode
    if wanted is not None and used is not wanted:
        named = "no mode" if used is None else f"mode {used}"
        raise ClientError(
            f"{name} was asked to reset in mode {wanted}, but its response names {named}: the group was reset"
            " there in another way, with other guarantees"
        )
    return (await remote.decode(answer, ResetOffsetBody)).offset_table, used


def _parse_mode(mode: ResetMode | str | None) -> ResetMode | None:
    """Parse a reset mode; ClientError if it is unknown."""
    return None if mode is None else parse_choice(ResetMode, mode, "mode")


def _mode_text(mode: ResetMode | None) -> str | None:
    return None if mode is None else str(mode)


async def _positions(remote: AdminRemote, topic: str, group: str) -> list[tuple[MessageQueue, int, int]]:
    """Return maximum and stored offset of every queue of the topic, sorted by queue."""
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
            # The group has no offset in the topic at this broker.
            for queue_id in range(queue_counts.get(broker.broker_name, 0)):
                queue = MessageQueue(topic, broker.broker_name, queue_id)
                maximum = await remote.api.max_offset(address, queue)
                known.append((queue, maximum, await remote.api.min_offset(address, queue)))
        positions.extend(known)
    return sorted(positions)
