"""The reset of one queue as RocketMQ 5's tool carries it out (docs/spec/reset.md D.9, end).

Source: 5.3.3 ``ResetOffsetByTimeCommand``, ``DefaultMQAdminExtImpl#resetOffsetByQueueId``.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.client.admin.remote import AdminBase
from rewindmq.client.admin.reset import ResetResult, require_reset_modes, reset_at
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue


@dataclass(frozen=True, slots=True)
class QueueReset:
    """What the tool did.

    Attributes:
        target: the offset given, or found by the time.
        result: what the broker answered; None when nothing was sent, since the target is 0.
    """

    target: int
    result: ResetResult | None


class QueueResetAdmin(AdminBase):
    """Resets single queues as RocketMQ 5's tool does."""

    async def reset_queue_as_5x(
        self,
        address: str,
        topic: str,
        group: str,
        queue_id: int,
        timestamp: int,
        offset: int | None = None,
    ) -> QueueReset:
        """Reset the group in one queue: 29 unless there is an offset; 15; then 222 without force.

        A target of 0 is not applied: that tool takes it for "nothing found". It also does not know which mode
        the broker resets in; RocketMQ's classic one would rewind the whole topic. So it is asked first for
        something that brokers of ours alone know, see ``reset_offset_of_queue``; a classic one of those
        refuses.

        Args:
            address: the broker's.
            timestamp: ms, read by the search: -1 is before all messages, not the end.

        Raises:
            ResponseError: the broker refused; by its notes, after the offset had been written (15).
            RemotingError: no answer within 5 s.
            ClientError: it is no broker of ours; nothing was written.
        """
        await require_reset_modes(self._remote, address, topic, group)
        queue = MessageQueue(topic, address, queue_id)
        target = (
            offset if offset is not None else await self._remote.api.search_offset(address, queue, timestamp)
        )
        if target <= 0:
            return QueueReset(target, None)
        await self._remote.api.update_consumer_offset_sync(address, group, queue, target)
        header = ResetOffsetRequestHeader(topic, group, 0, is_force=False, queue_id=queue_id, offset=target)
        try:
            table, mode = await reset_at(self._remote, address, address, header)
        except RewindMQError as error:
            error.add_note(f"offset {target} had been written before, as RocketMQ 5's tool does")
            raise
        return QueueReset(target, ResetResult(topic, group, 0, False, table, {address: mode}))
