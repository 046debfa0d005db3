"""The two tables a reset prints, and the fallback both reset commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewindmq.client.admin.commands.command import Printed
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.client.admin.reset import ResetResult, RollbackStats


async def reset_or_write(
    admin: AdminClient,
    topic: str,
    group: str,
    timestamp: int,
    force: bool,
    *,
    is_cpp: bool = False,
) -> tuple[bool, Printed]:
    """Have the group's consumers move; where no member is connected (206), write the offsets instead.

    Only 206 leads to the write (``behaviour.md`` D.1): any other refusal fails the command, and so does a
    timeout.

    Returns:
        Whether consumers carry it out (else the offsets are written already), and the table.
    """
    try:
        result = await admin.reset_offset_by_timestamp(topic, group, timestamp, force, is_cpp)
    except ResponseError as error:
        if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
    else:
        return True, _online_table(result)
    return False, _written_table(await admin.reset_offset_by_timestamp_old(topic, group, timestamp, force))


def _online_table(result: ResetResult) -> Printed:
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
