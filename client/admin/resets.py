"""Resets of groups, direct writes of their stored offsets, and what brokers tell of both.

Specification: docs/spec/reset.md D.1, D.8, D.9, D.11, D.12.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from rewindmq.client.admin.asking import ask_each
from rewindmq.client.admin.groups import GroupAdmin, broker_consume_stats, group_connection
from rewindmq.client.admin.remote import AdminPart, AdminRemote, not_online, queues_of
from rewindmq.client.admin.reset_result import CloneResult, ResetResult, RollbackStats
from rewindmq.client.admin.reset_target import Target, check_range, require_queues
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.fenced_commit import FencedCommitList
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.body.rewind import RewindList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.admin import ListFencedCommitsRequestHeader, ListRewindsRequestHeader
from rewindmq.protocol.header.reset import (
    CloneGroupOffsetRequestHeader,
    InvokeBrokerToResetOffsetResponseHeader,
    ResetOffsetRequestHeader,
)
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.options import parse_choice
from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.version import LanguageCode

_USE: Final = "use mode server or fenced, or stop the group's consumers first"


class ResetAdmin(AdminPart):
    """Resets groups, and writes and copies their stored offsets."""

    async def reset(
        self,
        topic: str,
        group: str,
        target: Target,
        *,
        mode: ResetMode | str | None = None,
        force: bool = True,
        write: bool | None = None,
        brokers: Collection[str] | None = None,
        is_cpp: bool = False,
        is_checked: bool = False,
    ) -> ResetResult:
        """Reset the group in the topic, to a time or to an offset for each queue.

        Each broker gets INVOKE_BROKER_TO_RESET_OFFSET (222), one after the other; for offsets, one request
        for each queue. Any error ends the reset: brokers before it stay reset, and the exception's notes name
        them; later brokers get no request.

        If no consumer is connected, this client writes the stored offsets instead. It learns that from a
        broker in classic mode, which returns CONSUMER_NOT_ONLINE (206); for offsets it asks before the reset,
        unless ``mode`` is given.

        Args:
            target: ms since the epoch, -1 for the end of every queue; or offsets by queue, which need mode
                ``server`` or ``fenced`` while a consumer is connected. Queues without an offset stay.
            mode: "classic", "server" or "fenced"; None: each broker uses its own mode.
            force: False moves a queue only back.
            write: True always writes the stored offsets. Running consumers get no notification then, and
                overwrite the offsets with their next commit, at most 5 s later. False never writes.
            brokers: for a time, names of the brokers that get the request; None: all of the topic.
            is_cpp: send the reset notifications in the form that C++ clients read; other clients ignore it.
            is_checked: do not ask whether the offsets exist, as a preview has done so.

        Raises:
            ClientError: nothing was reset, because the mode is unknown, an offset is out of range, its queue
                does not exist, or a broker that should reset single queues is not RewindMQ's. Or a broker
                used another mode than ``mode``.
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route; or a broker refused.
            RemotingError: no answer within 5 s.
        """
        wanted = _parse_mode(mode)
        if not isinstance(target, int):
            if is_cpp:
                raise ClientError("-c resets the whole topic to a time: leave it out")
            return await self._to_offsets(
                topic, group, target, wanted, force=force, write=write, is_checked=is_checked
            )
        if write:
            return _written(await self._write_time(topic, group, target, force=force))
        header = ResetOffsetRequestHeader(
            topic=topic, group=group, timestamp=target, is_force=force, reset_mode=wanted
        )
        try:
            return await self._to_time(header, brokers, is_cpp=is_cpp)
        except ResponseError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE or write is False:
                raise
        return _written(await self._write_time(topic, group, target, force=force))

    async def reset_groups(
        self,
        topic: str,
        groups: Sequence[str],
        target: Target,
        *,
        mode: ResetMode | str | None = None,
        force: bool = True,
    ) -> dict[str, ResetResult | RewindMQError]:
        """Reset one group after the other; see ``reset``. If one group fails, the others are still reset.

        RocketMQ's dashboard always writes the offsets of a group without consumers with force; this method
        applies ``force`` there, too.

        Returns:
            Result or error of each group, in the order of ``groups``.
        """
        outcomes: dict[str, ResetResult | RewindMQError] = {}
        for group in dict.fromkeys(groups):
            try:
                outcomes[group] = await self.reset(topic, group, target, mode=mode, force=force)
            except RewindMQError as error:
                outcomes[group] = error
        return outcomes

    async def reset_queue(
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

        The broker gets INVOKE_BROKER_TO_RESET_OFFSET (222), for offset 0, too. RocketMQ's broker in classic
        mode would reset the whole topic. It is therefore checks the broker first.

        Specification: docs/spec/reset.md D.9.

        Args:
            timestamp: the target in ms, unless ``offset`` is given.
            force: see ``reset``; ignored with ``offset``, and in mode ``server``.

        Returns:
            The result names the broker by its address.

        Raises:
            ResponseError: the broker refused, as RewindMQ's broker does in mode ``classic``.
            RemotingError: no answer within 5 s.
            ClientError: the broker is not RewindMQ's and got no reset; it used another mode than ``mode``; or
                ``mode`` is unknown.
        """
        await _require_reset_modes(self._remote, address, topic, group)
        header = ResetOffsetRequestHeader(
            topic=topic,
            group=group,
            timestamp=timestamp,
            is_force=force,
            queue_id=queue_id,
            offset=offset,
            reset_mode=_parse_mode(mode),
        )
        table, used = await _reset_at(self._remote, address, address, header)
        return ResetResult(table, {address: used})

    async def reset_queue_as_5x(
        self, address: str, topic: str, group: str, queue_id: int, timestamp: int, offset: int | None = None
    ) -> ResetResult:
        """Reset the group in one queue with the requests of RocketMQ 5's tool.

        These are SEARCH_OFFSET_BY_TIMESTAMP (29) unless ``offset`` is given, UPDATE_CONSUMER_OFFSET (15), and
        INVOKE_BROKER_TO_RESET_OFFSET (222) without force. If the target is 0 or negative, the last two are
        not sent, and the result names no mode: RocketMQ 5's tool takes 0 for "nothing found".

        Source: 5.3.3 ``ResetOffsetByTimeCommand``, ``DefaultMQAdminExtImpl#resetOffsetByQueueId``.

        Args:
            timestamp: ms, for the search: -1 is before all messages, not the end.
            offset: the target, instead of ``timestamp``.

        Returns:
            The target that was given or found; the broker is named by its address.

        Raises:
            ResponseError: the broker refused, as RewindMQ's broker does in mode ``classic``. The exception
                has a note if the offset was already committed.
            RemotingError: no answer within 5 s.
            ClientError: the broker is not RewindMQ's; nothing was written.
        """
        await _require_reset_modes(self._remote, address, topic, group)
        queue, api = MessageQueue(topic, address, queue_id), self._remote.api
        target = await api.search_offset(address, queue, timestamp) if offset is None else offset
        if target <= 0:
            return ResetResult({queue: target}, {})
        await api.update_consumer_offset_sync(address, group, queue, target)
        header = ResetOffsetRequestHeader(topic, group, 0, is_force=False, queue_id=queue_id, offset=target)
        try:
            _, used = await _reset_at(self._remote, address, address, header)
        except RewindMQError as error:
            error.add_note(f"offset {target} was already committed, as RocketMQ 5's tool does first")
            raise
        return ResetResult({queue: target}, {address: used})

    async def clone_group_offset(self, source: str, destination: str, topic: str | None) -> CloneResult:
        """Copy the stored offsets of one group to another, broker after broker.

        Each broker gets GET_CONSUME_STATS (208), then CLONE_GROUP_OFFSET (314) for each topic. mqadmin sends
        UPDATE_CONSUMER_OFFSET (15) for each queue instead, and copies every topic, whichever topic you name.
        Running consumers of the destination get no notification. They overwrite the offsets with their next
        commit, at most 5 s later.

        Args:
            topic: copy only this topic; None copies all topics of the source except its retry topic.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic does not exist;
                CONSUMER_NOT_ONLINE (206) if the source has no offsets there; SYSTEM_ERROR (1) if a broker
                refused, for example because the destination was reset in fenced mode.
            RemotingError: no answer. The exception's notes name the brokers that had already copied.
            ClientError: source and destination are the same group.
        """
        if source == destination:
            raise ClientError(f"{source} is both the source and the destination")
        table: dict[MessageQueue, int] = {}
        done: list[str] = []
        for name, address in await (self._remote.brokers_of(topic) if topic else self._remote.brokers()):
            try:
                stats = await broker_consume_stats(self._remote, address, source)
                here = {
                    queue: wrapper.consumer_offset
                    for queue, wrapper in stats.offset_table.items()
                    if (queue.topic == topic if topic else queue.topic != retry_topic(source))
                }
                for each in sorted({queue.topic for queue in here}):
                    header = CloneGroupOffsetRequestHeader(source, destination, each, offline=True)
                    await self._remote.ask_broker(
                        address, self._remote.command(RequestCode.CLONE_GROUP_OFFSET, header)
                    )
            except RewindMQError as error:
                if done:
                    error.add_note(f"already copied at: {', '.join(done)}")
                raise
            table.update(here)
            done.append(name)
        if not table:
            raise not_online(f"group {source} has no offsets in {topic or 'any topic'}: nothing is copied")
        return CloneResult(source, destination, dict(sorted(table.items())))

    async def fenced_commits(
        self, group: str | None = None, topic: str | None = None, address: str | None = None
    ) -> dict[str, FencedCommitList]:
        """Return the fenced commits of all masters that the name server knows, sorted by broker name.

        Args:
            group: only commits of this consumer group; None for all.
            topic: only commits in this topic; None for all.
            address: ask only the broker at this address; the address is then the key of the result.

        Raises:
            ResponseError: a broker refused; the exception's notes name it. RocketMQ's brokers return
                REQUEST_CODE_NOT_SUPPORTED (3).
            RemotingError: a broker did not answer.
        """
        if address is not None:
            return {address: await _fenced_commits_at(self._remote, address, group, topic)}
        info = await self._remote.cluster_info()
        lists = {}
        for name, broker in sorted(info.broker_addr_table.items()):
            master = broker.broker_addrs.get(MASTER_ID)
            if master is not None:
                try:
                    lists[name] = await _fenced_commits_at(self._remote, master, group, topic)
                except RewindMQError as error:
                    error.add_note(f"from {name}")
                    raise
        return lists

    async def broker_rewinds(self, address: str, group: str, topic: str) -> RewindList:
        """Return the group's offsets and latest rewinds at one broker: RewindMQ's LIST_REWINDS (190003).

        Raises:
            ResponseError: REQUEST_CODE_NOT_SUPPORTED (3) from RocketMQ's brokers; TOPIC_NOT_EXIST (17).
        """
        command = self._remote.command(RequestCode.LIST_REWINDS, ListRewindsRequestHeader(group, topic))
        return await self._remote.ask_broker_for(address, command, RewindList)

    async def _to_time(
        self, header: ResetOffsetRequestHeader, names: Collection[str] | None, *, is_cpp: bool
    ) -> ResetResult:
        table: dict[MessageQueue, int] = {}
        modes: dict[str, ResetMode | None] = {}
        for name, address in await self._remote.brokers_of(header.topic):
            if names is not None and name not in names:
                continue
            try:
                targets, modes[name] = await _reset_at(self._remote, name, address, header, is_cpp=is_cpp)
            except RewindMQError as error:
                _note_done(error, modes)
                raise
            table.update(targets)
        return ResetResult(dict(sorted(table.items())), modes)

    async def _to_offsets(
        self,
        topic: str,
        group: str,
        offsets: Mapping[MessageQueue, int],
        mode: ResetMode | None,
        *,
        force: bool,
        write: bool | None,
        is_checked: bool,
    ) -> ResetResult:
        rows: list[RollbackStats] = []
        moving = dict(sorted(offsets.items()))
        if not (is_checked and force):
            rows = await self._rows(topic, group, offsets, force=force)
            moving = {row.queue: row.timestamp_offset for row in rows if row.is_moved}
        if write is None:
            write = mode is None and await group_connection(self._remote, group) is None
        if write:
            await self._write(group, moving)
            return _written(rows) if rows else ResetResult(moving, {}, ())
        if mode is ResetMode.CLASSIC:
            raise ClientError(f"a classic reset has a time, and no offset for each queue: {_USE}")
        addresses = {queue.broker_name: await self._remote.address_of(queue) for queue in moving}
        for address in addresses.values():
            await _require_reset_modes(self._remote, address, topic, group)
        table: dict[MessageQueue, int] = {}
        modes: dict[str, ResetMode | None] = {}
        for queue, offset in moving.items():
            header = ResetOffsetRequestHeader(
                topic, group, 0, is_force=True, queue_id=queue.queue_id, offset=offset, reset_mode=mode
            )
            name = queue.broker_name
            try:
                targets, modes[name] = await _reset_at(self._remote, name, addresses[name], header)
            except RewindMQError as error:
                if mode is None and getattr(error, "code", None) == ResponseCode.SYSTEM_ERROR:
                    error.add_note(_USE)
                _note_done(error, map(_name, table))
                raise
            table.update(targets)
        return ResetResult(table, modes)

    async def _rows(
        self, topic: str, group: str, offsets: Mapping[MessageQueue, int], *, force: bool
    ) -> list[RollbackStats]:
        """Check the offsets; return for each queue where it is, and where it goes."""
        queues, api = sorted(offsets), self._remote.api
        route = await self._remote.route(topic)
        require_queues(topic, offsets, queues_of(topic, route))
        stats = (await GroupAdmin(self._remote).topic_consume_stats(group, topic)).offset_table

        async def bounds(queue: MessageQueue) -> tuple[int, int]:
            address = await self._remote.address_of(queue)
            return await api.min_offset(address, queue), await api.max_offset(address, queue)

        rows = []
        for queue, (least, most) in zip(queues, await ask_each(queues, bounds), strict=True):
            target = offsets[queue]
            check_range(queue, target, least, most)
            stored = stats[queue].consumer_offset if queue in stats else 0
            rows.append(RollbackStats(queue, most, stored, target, target if force else min(target, stored)))
        return rows

    async def _write(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Write stored offsets: UPDATE_CONSUMER_OFFSET (15)."""
        written: list[str] = []
        for queue, offset in offsets.items():
            try:
                address = await self._remote.address_of(queue)
                await self._remote.api.update_consumer_offset_sync(address, group, queue, offset)
            except RewindMQError as error:
                _note_done(error, written)
                raise
            written.append(_name(queue))

    async def _write_time(
        self, topic: str, group: str, timestamp: int, *, force: bool
    ) -> list[RollbackStats]:
        """Write the offsets of a time.

        One case differs from 4.9.4: the topic has more read than write queues, and the group no offsets.
        RocketMQ's tool fails then; this takes the minimum and maximum of each queue.
        """
        rows: list[RollbackStats] = []
        for queue, broker_offset, consumer_offset in await _positions(self._remote, topic, group):
            try:
                target = await self._write_queue(group, queue, timestamp, None if force else consumer_offset)
            except RewindMQError as error:
                _note_done(error, [_name(row.queue) for row in rows if row.is_moved])
                raise
            stored = target if force else min(target, consumer_offset)
            rows.append(RollbackStats(queue, broker_offset, consumer_offset, target, stored))
        return rows

    async def _write_queue(self, group: str, queue: MessageQueue, timestamp: int, limit: int | None) -> int:
        """Return the offset of a time; write it as the stored offset unless it is above ``limit``."""
        address = await self._remote.address_of(queue)
        if timestamp == MAX_OFFSET_TIMESTAMP:
            target = await self._remote.api.max_offset(address, queue)
        else:
            target = await self._remote.api.search_offset(address, queue, timestamp)
        if limit is None or target <= limit:
            await self._remote.api.update_consumer_offset_sync(address, group, queue, target)
        return target


def _written(rows: Sequence[RollbackStats]) -> ResetResult:
    return ResetResult({row.queue: row.rollback_offset for row in rows}, {}, tuple(rows))


def _note_done(error: RewindMQError, done: Iterable[str]) -> None:
    if names := ", ".join(done):
        error.add_note(f"already reset: {names}")


def _name(queue: MessageQueue) -> str:
    return f"{queue.broker_name}:{queue.queue_id}"


async def _fenced_commits_at(
    remote: AdminRemote, address: str, group: str | None = None, topic: str | None = None
) -> FencedCommitList:
    """Send LIST_FENCED_COMMITS to one broker; None asks for all groups or all topics."""
    header = ListFencedCommitsRequestHeader(group, topic)
    command = remote.command(RequestCode.LIST_FENCED_COMMITS, header)
    return await remote.ask_broker_for(address, command, FencedCommitList)


async def _require_reset_modes(remote: AdminRemote, address: str, topic: str, group: str) -> None:
    """Ensure that a broker knows reset modes: it must handle LIST_FENCED_COMMITS, RewindMQ's own request.

    Raises:
        ResponseError: the broker refused for another reason than an unknown request code.
        ClientError: the broker does not know reset modes.
    """
    try:
        await _fenced_commits_at(remote, address, group, topic)
    except ResponseError as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        raise ClientError(
            f"the broker at {address} does not know reset modes: in classic mode it would reset the whole"
            " topic instead of one queue, so no reset was sent"
        ) from None


async def _reset_at(
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
