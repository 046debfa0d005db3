"""Resets a group to an offset for each queue, or writes these offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rewindmq.client.admin.reset import ResetAdmin, ResetResult, require_reset_modes, reset_at
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.options import parse_choice
from rewindmq.protocol.reset_mode import ResetMode

_USE: Final = "use mode server or fenced, or stop the group's consumers first"


class OffsetResetAdmin(ResetAdmin):
    """Moves single queues of a group to given offsets."""

    async def reset_to_offsets(
        self,
        topic: str,
        group: str,
        offsets: Mapping[MessageQueue, int],
        *,
        mode: ResetMode | str | None = None,
    ) -> ResetResult:
        """Reset a group to an offset for each queue, in mode ``server`` or ``fenced``, queue after queue.

        Each broker gets INVOKE_BROKER_TO_RESET_OFFSET (222) for each queue, after ``require_reset_modes`` has
        checked every broker. An error ends the loop; the exception's notes name the queues already reset.

        Args:
            offsets: of the topic's queues; other queues stay where they are.
            mode: None: each broker uses its own mode.

        Raises:
            ClientError: a broker is not RewindMQ's, so nothing was reset; the mode is ``classic`` or unknown;
                or a broker used another mode.
            ResponseError: a broker refused, as in mode ``classic``, or for an offset out of range.
            RemotingError: no answer within 5 s.
        """
        wanted = None if mode is None else parse_choice(ResetMode, mode, "mode")
        if wanted is ResetMode.CLASSIC:
            raise ClientError(f"a classic reset has a time, and no offset for each queue: {_USE}")
        addresses = {queue.broker_name: await self._remote.address_of(queue) for queue in sorted(offsets)}
        for address in addresses.values():
            await require_reset_modes(self._remote, address, topic, group)
        table: dict[MessageQueue, int] = {}
        modes: dict[str, ResetMode | None] = {}
        for queue, offset in sorted(offsets.items()):
            header = ResetOffsetRequestHeader(
                topic, group, 0, is_force=True, queue_id=queue.queue_id, offset=offset, reset_mode=wanted
            )
            name = queue.broker_name
            try:
                targets, modes[name] = await reset_at(self._remote, name, addresses[name], header)
            except RewindMQError as error:
                _add_notes(error, wanted, table)
                raise
            table.update(targets)
        return ResetResult(topic, group, 0, True, table, modes)

    async def write_offsets(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Write stored offsets of a group without running consumers: UPDATE_CONSUMER_OFFSET (15).

        Running consumers get no notification, and overwrite the offsets with their next commit.

        Raises:
            ResponseError: a broker refused, for example because the queue was reset in fenced mode. The
                exception's notes name the queues whose offsets are written.
            RemotingError: no answer.
        """
        written: dict[MessageQueue, int] = {}
        for queue, offset in sorted(offsets.items()):
            try:
                address = await self._remote.address_of(queue)
                await self._remote.api.update_consumer_offset_sync(address, group, queue, offset)
            except RewindMQError as error:
                _add_notes(error, ResetMode.SERVER, written)
                raise
            written[queue] = offset


def _add_notes(error: RewindMQError, mode: ResetMode | None, done: Mapping[MessageQueue, int]) -> None:
    if mode is None and isinstance(error, ResponseError) and error.code == ResponseCode.SYSTEM_ERROR:
        error.add_note(_USE)
    if done:
        names = ", ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in done)
        error.add_note(f"already reset: {names}")
