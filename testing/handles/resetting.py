"""Resets a group for a test: by time where a time says it exactly, else queue by queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RemotingError, ResponseError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.options import parse_choice
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.testing.errors import KitError
from rewindmq.testing.handles.context import Context
from rewindmq.testing.handles.mark import Mark
from rewindmq.testing.handles.reset_target import ResetTarget, timestamp_of

# The end of RocketMQ's remark if a queue of the group has no stored offset; the code is SYSTEM_ERROR (1).
_NO_OFFSET: Final = "not exist"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What the brokers accepted.

    Attributes:
        targets: the target offset of each queue.
        modes: the reset mode of each broker, by its name; None for RocketMQ's brokers, which name no mode.
    """

    targets: dict[MessageQueue, int]
    modes: dict[str, ResetMode | None]


@dataclass(frozen=True, slots=True)
class _Plan:
    """A reset as a time in ms, or as an offset for each queue."""

    timestamp: int | None
    offsets: Mapping[MessageQueue, int]


class Resetter:
    """Resets one group in one topic."""

    def __init__(self, context: Context, group: str, topic: str) -> None:
        self._context = context
        self._group = group
        self._topic = topic

    async def reset(self, to: ResetTarget, mode: ResetMode | str | None, timeout: float | None) -> Accepted:
        """Reset until every broker accepts.

        A broker refuses a reset in mode ``classic`` while no consumer of the group is connected, or while a
        queue has no stored offset. Such a refusal, and a request without a response, is repeated.

        Raises:
            KitError: the target has another type, or a queue that the topic does not have; or mode
                "classic" cannot express it.
            NotSeenError: a broker refused so, or did not answer, for the whole timeout.
            RewindMQError: a broker refused for another reason, or used another mode.
        """
        wanted = self._context.reset_mode
        if mode is not None:
            wanted = parse_choice(ResetMode, mode, "mode", error=KitError)
        plan = await self._plan(to)
        if plan.timestamp is None and wanted is ResetMode.CLASSIC:
            raise KitError(
                "a classic reset takes one time for all queues, and none leads to these offsets"
                ' (RocketMQ 4.9 takes the message nearest to a time): use mode="server" or mode="fenced"'
            )
        accepted: list[Accepted] = []
        failures: list[RewindMQError] = []

        async def condition() -> str | None:
            try:
                accepted.append(await self._carry_out(plan, wanted))
            except RemotingError as error:
                # The broker may be down; a second reset has the same targets.
                return f"{type(error).__name__}: {error}"
            except RewindMQError as error:
                if wanted in (None, ResetMode.CLASSIC) and _is_too_early(error):
                    return str(error)
                failures.append(error)
            return None

        await self._context.waiter.until(condition, f"a reset of group {self._group} is accepted", timeout)
        if failures:
            raise failures[0]
        return accepted[0]

    async def _plan(self, to: ResetTarget) -> _Plan:
        if isinstance(to, Mapping):
            await self._check_queues(to)
            return _Plan(None, to)
        if not isinstance(to, Mark):
            return _Plan(timestamp_of(to), {})
        first = await self._context.first_since(self._topic, to.at_ms)
        timestamp = min((at_ms for _, at_ms in first.values() if at_ms is not None), default=to.at_ms)
        for queue, (offset, _) in first.items():
            if await self._context.admin.messages.search_offset(queue, timestamp) != offset:
                return _Plan(None, {queue: offset for queue, (offset, _) in first.items()})
        return _Plan(timestamp, {})

    async def _check_queues(self, offsets: Mapping[MessageQueue, int]) -> None:
        if not offsets:
            raise KitError("the target names no queue: a reset by offsets needs {queue: offset}")
        known = await self._context.queue_bounds(self._topic)
        for queue in offsets:
            if queue in known:
                continue
            if queue.topic != self._topic:
                raise KitError(
                    f"the target has a queue of topic {queue.topic}; the group consumes {self._topic}"
                )
            raise KitError(
                f"topic {self._topic} has no queue {_name(queue)}; queues: {', '.join(map(_name, known))}"
            )

    async def _carry_out(self, plan: _Plan, mode: ResetMode | None) -> Accepted:
        admin = self._context.admin
        if plan.timestamp is None:
            mode = mode or ResetMode.FENCED
        target = plan.offsets if plan.timestamp is None else plan.timestamp
        result = await admin.resets.reset(self._topic, self._group, target, mode=mode, write=False)
        return Accepted(result.offset_table, result.modes)


def _name(queue: MessageQueue) -> str:
    return f"{queue.broker_name}/{queue.queue_id}"


def _is_too_early(error: RewindMQError) -> bool:
    """Return True for a classic refusal that a later reset may not get; the broker has changed nothing."""
    if not isinstance(error, ResponseError):
        return False
    if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
        return True
    return error.code == ResponseCode.SYSTEM_ERROR and error.remark.endswith(_NO_OFFSET)
