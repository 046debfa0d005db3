"""Resets one queue as RocketMQ 5's tool does (docs/spec/reset.md D.9, end).

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
    """The outcome of the reset of one queue.

    Attributes:
        target: the offset that was given, or found for the timestamp.
        result: the broker's response; None if no reset was sent, because the target is 0 or negative.
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
        """Reset the group in one queue with the requests of RocketMQ 5's tool.

        These are SEARCH_OFFSET_BY_TIMESTAMP (29) unless ``offset`` is given, UPDATE_CONSUMER_OFFSET (15), and
        INVOKE_BROKER_TO_RESET_OFFSET (222) without force. If the target is 0 or negative, the last two are
        not sent: RocketMQ 5's tool takes 0 for "nothing found".

        RocketMQ's broker in classic mode would reset the whole topic. ``require_reset_modes`` therefore
        checks the broker first.

        Args:
            address: of the broker.
            timestamp: ms, for the search: -1 is before all messages, not the end.
            offset: the target, instead of ``timestamp``.

        Raises:
            ResponseError: the broker refused, as RewindMQ's broker does in mode ``classic``. The exception
                has a note if the offset was already committed.
            RemotingError: no answer within 5 s.
            ClientError: the broker is not RewindMQ's; nothing was written.
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
            error.add_note(f"offset {target} was already committed, as RocketMQ 5's tool does first")
            raise
        return QueueReset(target, ResetResult(topic, group, 0, False, table, {address: mode}))
