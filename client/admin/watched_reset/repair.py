"""Resets the lost queues of a reset again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.watched_reset.carry_out import CarriedOut, carry_out
from rewindmq.client.admin.watched_reset.target import Target
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

_BY_QUEUE: Final = frozenset({ResetMode.SERVER, ResetMode.FENCED})


async def repair(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    first: CarriedOut,
    lost: Mapping[MessageQueue, int],
    *,
    force: bool,
) -> dict[str, str]:
    """Reset the lost queues to their targets again, and no other queue.

    A classic reset moves all queues of a broker. It is repeated at a broker whose queues are all lost. If
    only some are lost, these are reset one by one in mode ``server``. The other modes are kept.

    Args:
        first: the outcome of the reset that was lost.
        lost: target offset of each lost queue.

    Returns:
        Broker name to the mode that it used, "write" if the client wrote the offsets.

    Raises:
        ClientError: a broker resets only whole topics, so no queue of it was reset again.
        ResponseError, RemotingError: a broker refused, or did not answer.
    """
    if first.result is None:
        again = await carry_out(admin, topic, group, dict(lost))
        return modes_of(again, lost)
    used: dict[str, str] = {}
    for broker in sorted({queue.broker_name for queue in lost}):
        here = {queue: offset for queue, offset in lost.items() if queue.broker_name == broker}
        mode = first.result.modes.get(broker)
        all_here = {queue for queue in first.offsets if queue.broker_name == broker}
        if mode not in _BY_QUEUE and isinstance(target, int) and here.keys() == all_here:
            result = await admin.reset_offset_by_timestamp(
                topic, group, target, force, mode=mode, brokers={broker}
            )
        else:
            result = await admin.reset_to_offsets(
                topic, group, here, mode=mode if mode in _BY_QUEUE else ResetMode.SERVER
            )
        used |= modes_of(CarriedOut(result), here)
    return used


def modes_of(outcome: CarriedOut, queues: Iterable[MessageQueue]) -> dict[str, str]:
    """Return broker name to the mode that it used for a reset of the queues, "write" for a direct write."""
    if outcome.result is None:
        return {queue.broker_name: "write" for queue in queues}
    return {broker: str(mode or ResetMode.CLASSIC) for broker, mode in outcome.result.modes.items()}
