"""Carries a reset out, to a time or to an offset for each queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rewindmq.client.admin.reset import ResetResult, RollbackStats
from rewindmq.client.admin.watched_reset.asking import ask_each
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.target import Offsets, Target, check_range, require_queues
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """The outcome of a reset.

    Attributes:
        result: the brokers' answers; None if the client wrote the stored offsets.
        written: the written offsets; empty if the brokers reset the group.
    """

    result: ResetResult | None
    written: list[RollbackStats] = field(default_factory=list)

    @property
    def offsets(self) -> dict[MessageQueue, int]:
        """Target offset of each queue after a reset, stored offset after a direct write."""
        if self.result is not None:
            return self.result.offset_table
        return {row.queue: row.rollback_offset for row in self.written}


async def carry_out(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    *,
    force: bool = True,
    mode: ResetMode | None = None,
    is_cpp: bool = False,
    brokers: Brokers | None = None,
) -> CarriedOut:
    """Reset a group, or write its stored offsets if no consumer is connected.

    A reset to a time is ``AdminClient.reset_or_write``. Offsets are written if no mode is given and no
    consumer is connected; otherwise they are ``AdminClient.reset_to_offsets``.

    Args:
        force: False moves a queue only back.
        brokers: asks the brokers; None makes its own.

    Raises:
        ClientError: an offset is out of range, or its queue does not exist: nothing was reset. Or see the
            named methods.
        ResponseError, RemotingError: see the named methods.
    """
    if isinstance(target, int):
        outcome = await admin.reset_or_write(topic, group, target, force, is_cpp=is_cpp, mode=mode)
        return CarriedOut(outcome.result, outcome.written or [])
    if is_cpp:
        raise ClientError("-c resets the whole topic to a time: leave it out")
    brokers = Brokers(admin) if brokers is None else brokers
    require_queues(topic, target, (await brokers.routes.shape_of(topic)).queues)
    rows = await _rows(admin, topic, group, target, force=force)
    moving = {row.queue: row.rollback_offset for row in rows if row.rollback_offset == row.timestamp_offset}
    if mode is None and await brokers.consumers_of(group) is None:
        await admin.write_offsets(group, moving)
        return CarriedOut(None, rows)
    return CarriedOut(await admin.reset_to_offsets(topic, group, moving, mode=mode))


async def _rows(
    admin: AdminClient, topic: str, group: str, offsets: Offsets, *, force: bool
) -> list[RollbackStats]:
    """Check the offsets; return for each queue where it is, and where it goes."""
    stats = (await admin.topic_consume_stats(group, topic)).offset_table
    queues = sorted(offsets)

    async def bounds(queue: MessageQueue) -> tuple[int, int]:
        return await admin.min_offset(queue), await admin.max_offset(queue)

    rows = []
    for queue, (least, most) in zip(queues, await ask_each(queues, bounds), strict=True):
        target = offsets[queue]
        check_range(queue, target, least, most)
        stored = stats[queue].consumer_offset if queue in stats else 0
        after = target if force else min(target, stored)
        rows.append(RollbackStats(queue, most, stored, target, after))
    return rows
