"""Resets several groups in a topic, as RocketMQ's dashboard does (docs/spec/reset.md D.12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewindmq.client.admin.failure_text import failure_text
from rewindmq.client.admin.reset import (
    ResetAdmin,
    ResetResult,
    RollbackStats,
)
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode


@dataclass(frozen=True, slots=True)
class GroupResetResult:
    """The outcome of one group's reset; exactly one of ``result``, ``written`` and ``failure`` is set.

    Attributes:
        result: the brokers reset the group.
        written: no consumer was connected, so the client wrote the stored offsets.
        failure: the error; its notes name the brokers that had already reset the group.
    """

    group: str
    result: ResetResult | None = None
    written: list[RollbackStats] | None = None
    failure: RewindMQError | None = None

    @property
    def is_success(self) -> bool:
        return self.failure is None

    @property
    def offsets(self) -> dict[MessageQueue, int]:
        """Target offset of each queue after a reset, stored offset after a direct write."""
        if self.result is not None:
            return self.result.offset_table
        return {row.queue: row.rollback_offset for row in self.written or ()}

    @property
    def error_message(self) -> str | None:
        """The failure and its notes as one line."""
        return None if self.failure is None else failure_text(self.failure)


class GroupResetAdmin(ResetAdmin):
    """Resets groups, or writes their stored offsets if no consumer is connected."""

    async def reset_groups(
        self,
        topic: str,
        groups: Sequence[str],
        timestamp: int,
        force: bool = True,
        mode: ResetMode | str | None = None,
    ) -> list[GroupResetResult]:
        """Reset one group after the other. If one group fails, the others are still reset.

        A broker in classic mode that knows no consumer of a group returns CONSUMER_NOT_ONLINE (206). The
        client then writes the group's stored offsets. RocketMQ's dashboard always writes them with force;
        this method applies ``force`` there, too.

        Args:
            groups: in the order of their resets; a group that is named twice is reset once.
            timestamp, force, mode: see ``reset_offset_by_timestamp``.

        Returns:
            An outcome for each group, in the same order.
        """
        return [
            await self._reset_group(topic, group, timestamp, force, mode) for group in dict.fromkeys(groups)
        ]

    async def reset_or_write(
        self,
        topic: str,
        group: str,
        timestamp: int,
        force: bool = True,
        *,
        is_cpp: bool = False,
        mode: ResetMode | str | None = None,
    ) -> GroupResetResult:
        """Reset a group; if a broker in classic mode knows no consumer of it, write its stored offsets.

        Only CONSUMER_NOT_ONLINE (206) leads to the write (docs/spec/reset.md D.1). Any other error, also a
        timeout, is raised.

        Raises:
            ResponseError, RemotingError, ClientError: see ``reset_offset_by_timestamp``.
        """
        try:
            result = await self.reset_offset_by_timestamp(topic, group, timestamp, force, is_cpp, mode)
        except ResponseError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
        else:
            return GroupResetResult(group, result=result)
        written = await self.reset_offset_by_timestamp_old(topic, group, timestamp, force)
        return GroupResetResult(group, written=written)

    async def _reset_group(
        self, topic: str, group: str, timestamp: int, force: bool, mode: ResetMode | str | None
    ) -> GroupResetResult:
        try:
            return await self.reset_or_write(topic, group, timestamp, force, mode=mode)
        except RewindMQError as error:
            return GroupResetResult(group, failure=error)
