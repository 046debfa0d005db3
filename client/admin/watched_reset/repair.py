"""Resets the lost queues of a reset again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.failure_text import failure_text
from rewindmq.client.admin.reset_result import ResetResult
from rewindmq.client.admin.reset_target import Target
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

_BY_QUEUE: Final = frozenset({ResetMode.SERVER, ResetMode.FENCED})


@dataclass(frozen=True, slots=True)
class BrokerRepair:
    """Queues of one broker that were reset again, or that were not.

    Attributes:
        mode: the mode that the broker used, "write" if the client wrote the offsets; empty after a failure.
        failure: why the queues were not reset again; None if they were.
    """

    broker: str
    queues: tuple[MessageQueue, ...]
    mode: str = ""
    failure: str | None = None


async def repair(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    first: ResetResult,
    lost: Mapping[MessageQueue, int],
    *,
    force: bool,
) -> list[BrokerRepair]:
    """Reset the lost queues to their targets again, and no other queue.

    A classic reset moves all queues of a broker. It is repeated at a broker whose queues are all lost. If
    only some are lost, these are reset one by one in mode ``server``. The other modes are kept.

    A failure ends the repair at its broker. The other brokers are still asked.

    Args:
        first: the outcome of the reset that was lost.
        lost: target offset of each lost queue.

    Returns:
        For each broker, the queues that were reset again, then those that were not.
    """
    outcomes: list[BrokerRepair] = []
    for broker in sorted({queue.broker_name for queue in lost}):
        left = {queue: offset for queue, offset in sorted(lost.items()) if queue.broker_name == broker}
        done: list[MessageQueue] = []
        mode, failure = "", None
        try:
            steps = _steps(admin, topic, group, target, first, broker, dict(left), force=force)
            async with aclosing(steps):
                async for queues, outcome in steps:
                    mode = modes_of(outcome, queues)[broker]
                    done += queues
                    for queue in queues:
                        del left[queue]
        except RewindMQError as error:
            failure = failure_text(error)
        if done:
            outcomes.append(BrokerRepair(broker, tuple(done), mode))
        if failure is not None:
            outcomes.append(BrokerRepair(broker, tuple(left), failure=failure))
    return outcomes


def modes_of(outcome: ResetResult, queues: Iterable[MessageQueue]) -> dict[str, str]:
    """Return broker name to the mode that it used for a reset of the queues, "write" for a direct write."""
    if outcome.written is not None:
        return {queue.broker_name: "write" for queue in queues}
    return {broker: str(mode or ResetMode.CLASSIC) for broker, mode in outcome.modes.items()}


async def _steps(
    admin: AdminClient,
    topic: str,
    group: str,
    target: Target,
    first: ResetResult,
    broker: str,
    lost: Mapping[MessageQueue, int],
    *,
    force: bool,
) -> AsyncGenerator[tuple[list[MessageQueue], ResetResult]]:
    """Reset a broker's queues in as few requests as its mode allows; yield the queues of each request."""
    if first.written is not None:
        for queue, offset in lost.items():
            yield [queue], await admin.resets.reset(topic, group, {queue: offset})
        return
    mode = first.modes.get(broker)
    all_here = {queue for queue in first.offset_table if queue.broker_name == broker}
    if mode not in _BY_QUEUE and isinstance(target, int) and lost.keys() == all_here:
        result = await admin.resets.reset(
            topic, group, target, mode=mode, force=force, write=False, brokers={broker}
        )
        if broker not in result.modes:
            raise ClientError(f"broker {broker} no longer serves topic {topic}: start it, and reset again")
        yield list(lost), result
        return
    for queue, offset in lost.items():
        kept = mode if mode in _BY_QUEUE else ResetMode.SERVER
        yield [queue], await admin.resets.reset(topic, group, {queue: offset}, mode=kept, is_checked=True)
