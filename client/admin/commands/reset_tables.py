"""Shared by both reset commands: the tables they print, and the mode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rewindmq.client.admin.commands.command import Printed
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.reset_result import ResetResult, RollbackStats


def reset_data(result: ResetResult) -> dict[str, Any]:
    """Return what a reset did, for JSON."""
    return {
        "online": result.written is None,
        "mode": describe_modes(result),
        "queues": reset_table(result).data,
    }


def mode_note(result: ResetResult, wanted: ResetMode | None) -> str | None:
    """Return the note that names the mode, or None if the output is the same as mqadmin's.

    A classic reset without ``--mode`` gets no note, because mqadmin of 4.x knows no other mode.
    """
    mode = describe_modes(result)
    return None if mode is None or (wanted is None and mode == ResetMode.CLASSIC) else f"mode[{mode}]"


def describe_modes(result: ResetResult) -> str | None:
    """Return the mode that the brokers used; each broker's if they differ; None if no broker names one."""
    modes = {broker: str(mode) for broker, mode in result.modes.items() if mode is not None}
    if len(set(modes.values())) <= 1:
        return next(iter(modes.values()), None)
    return ", ".join(f"{broker}={mode}" for broker, mode in sorted(modes.items()))


def reset_table(result: ResetResult) -> Printed:
    """Return mqadmin's table of a reset by the brokers (broker, queue, target offset), or of a write."""
    if result.written is not None:
        return _written_table(result.written)
    lines = [_online_row("#brokerName", "#queueId", "#offset")]
    data = []
    for queue, offset in result.offset_table.items():
        lines.append(_online_row(queue.broker_name[:32], queue.queue_id, offset))
        data.append({"brokerName": queue.broker_name, "queueId": queue.queue_id, "offset": offset})
    return Printed(lines, data)


def _online_row(broker: str, queue_id: object, offset: object) -> str:
    return f"{broker:<40}  {queue_id!s:<40}  {offset!s:<40}"


def _written_table(rows: Iterable[RollbackStats]) -> Printed:
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
