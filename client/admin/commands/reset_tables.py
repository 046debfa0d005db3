"""Shared by both reset commands: the tables they print, the fallback to a direct write, and the mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.watched_reset.carry_out import carry_out
from rewindmq.client.admin.watched_reset.target import Target
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.client.admin.reset import ResetResult, RollbackStats


@dataclass(frozen=True, slots=True)
class ResetOutcome:
    """The outcome of a reset.

    Attributes:
        online: True if the brokers reset the group, False if the client wrote the stored offsets.
        mode: see ``describe_modes``; None if the client wrote the offsets.
    """

    online: bool
    mode: str | None
    table: Printed

    def mode_note(self, wanted: ResetMode | None) -> str | None:
        """Return the note that names the mode, or None if the output is the same as mqadmin's.

        A classic reset without ``--mode`` gets no note, because mqadmin of 4.x knows no other mode.
        """
        is_mqadmins = wanted is None and self.mode == ResetMode.CLASSIC
        return None if is_mqadmins or self.mode is None else f"mode[{self.mode}]"


async def reset_or_write(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    force: bool,
    *,
    is_cpp: bool = False,
    mode: ResetMode | None = None,
) -> ResetOutcome:
    """Reset the group, or write its offsets, see ``carry_out``."""
    outcome = await carry_out(admin, topic, group, target, force=force, is_cpp=is_cpp, mode=mode)
    if outcome.result is None:
        return ResetOutcome(False, None, _written_table(outcome.written))
    return ResetOutcome(True, describe_modes(outcome.result), online_table(outcome.result))


def describe_modes(result: ResetResult) -> str | None:
    """Return the mode that the brokers used; each broker's if they differ; None if no broker names one."""
    modes = {broker: str(mode) for broker, mode in result.modes.items() if mode is not None}
    if len(set(modes.values())) <= 1:
        return next(iter(modes.values()), None)
    return ", ".join(f"{broker}={mode}" for broker, mode in sorted(modes.items()))


def online_table(result: ResetResult) -> Printed:
    """Return mqadmin's table of a reset by the brokers: broker, queue, target offset."""
    lines = [_online_row("#brokerName", "#queueId", "#offset")]
    data = []
    for queue, offset in result.offset_table.items():
        lines.append(_online_row(queue.broker_name[:32], queue.queue_id, offset))
        data.append({"brokerName": queue.broker_name, "queueId": queue.queue_id, "offset": offset})
    return Printed(lines, data)


def _online_row(broker: str, queue_id: object, offset: object) -> str:
    return f"{broker:<40}  {queue_id!s:<40}  {offset!s:<40}"


def _written_table(rows: list[RollbackStats]) -> Printed:
    names = ("brokerName", "queueId", "brokerOffset", "consumerOffset", "timestampOffset", "rollbackOffset")
    lines = ["  ".join(f"{'#' + name:<20}" for name in names)]
    data = []
    for row in rows:
        columns = (
            row.queue.broker_name[:32],
            row.queue.queue_id,
            row.broker_offset,
            row.consumer_offset,
            row.timestamp_offset,
            row.rollback_offset,
        )
        lines.append("  ".join(f"{column!s:<20}" for column in columns))
        data.append(dict(zip(names, columns, strict=True)))
    return Printed(lines, data)
