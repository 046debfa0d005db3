"""Resetting several groups in a topic, as RocketMQ's dashboard does (docs/spec/reset.md D.12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
class GroupReset:
    """What the reset of one group came to.

    Attributes:
        result: the brokers reset it; None where they did not.
        written: no member was connected, so the offsets were written one by one; None otherwise.
        failure: why neither happened; the group may have been reset at some brokers (see its notes).
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
        """Where each queue was asked to go, or stands now that it was written."""
        if self.result is not None:
            return self.result.offset_table
        return {row.queue: row.rollback_offset for row in self.written or ()}

    @property
    def error_message(self) -> str | None:
        """The failure as one line."""
        if self.failure is None:
            return None
        notes = [f"({note})" for note in getattr(self.failure, "__notes__", ())]
        return " ".join([str(self.failure) or type(self.failure).__name__, *notes])


class GroupResetAdmin(ResetAdmin):
    """Resets groups, or writes their offsets where no consumer is connected."""

    async def reset_groups(
        self,
        topic: str,
        groups: Sequence[str],
        timestamp: int,
        force: bool = True,
        mode: ResetMode | str | None = None,
    ) -> list[GroupReset]:
        """Reset one group after the other; a failure ends that group's reset, not the others'.

        A group that a classic broker knows no consumer of (206) has its offsets written instead. RocketMQ's
        dashboard does that with force, whatever was asked for; here ``force`` counts there too.

        Args:
            groups: reset in this order; one named twice is reset once.
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
    ) -> GroupReset:
        """Have the brokers reset a group; write its offsets where a classic one knows no consumer (206).

        Only 206 leads to the write (docs/spec/reset.md D.1): any other refusal fails, and so does a time-out.

        Raises:
            ResponseError, RemotingError, ClientError: see ``reset_offset_by_timestamp``.
        """
        try:
            result = await self.reset_offset_by_timestamp(topic, group, timestamp, force, is_cpp, mode)
        except ResponseError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
        else:
            return GroupReset(group, result=result)
        written = await self.reset_offset_by_timestamp_old(topic, group, timestamp, force)
        return GroupReset(group, written=written)

    async def _reset_group(
        self, topic: str, group: str, timestamp: int, force: bool, mode: ResetMode | str | None
    ) -> GroupReset:
        try:
            return await self.reset_or_write(topic, group, timestamp, force, mode=mode)
        except RewindMQError as error:
            return GroupReset(group, failure=error)
