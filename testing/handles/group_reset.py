"""GroupReset: an accepted reset of a group, and whether the group follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.testing.handles.context import Context
from rewindmq.testing.handles.resetting import Accepted
from rewindmq.testing.messages.deliveries import Deliveries, Delivery
from rewindmq.testing.messages.kit_message import KitMessage, in_queue_order

_SHOWN: Final = 10


class OffsetsOfGroup(Protocol):
    """The part of a group that a reset asks for."""

    name: str

    async def offsets(self) -> dict[MessageQueue, int]: ...


class GroupReset:
    """A reset that all brokers have accepted.

    Acceptance does not mean that the group follows: a classic reset can be lost (docs/race/README.md).
    ``redelivered`` and ``stored`` show whether it does.

    Attributes:
        targets: the target offset of each queue.
        modes: the reset mode that each broker used, by the broker's name.
        expected: queue and offset of each message between the target and the queue's end at the time of the
            reset.
    """

    def __init__(
        self,
        context: Context,
        group: OffsetsOfGroup,
        deliveries: Deliveries,
        number: int,
        accepted: Accepted,
        expected: set[tuple[MessageQueue, int]],
    ) -> None:
        self.targets = accepted.targets
        self.modes = accepted.modes
        self.expected = expected
        self._context = context
        self._group = group
        self._recorded = deliveries
        self._number = number

    @property
    def deliveries(self) -> list[Delivery]:
        """The deliveries that began after the reset was requested, in their order."""
        return self._recorded.since(self._number)

    @property
    def delivered(self) -> list[KitMessage]:
        """The messages that were delivered after the reset was requested, each once, by queue and offset."""
        return in_queue_order(each.message for each in self.deliveries)

    async def redelivered(self, timeout: float | None = None) -> list[KitMessage]:
        """Wait until the listener has succeeded with every message that the reset goes back over.

        A reset that skips messages goes back over none: then wait until the targets are stored.

        Args:
            timeout: real seconds; None: 20 s and 60 s of the cluster's time.

        Returns:
            ``delivered``.

        Raises:
            NotSeenError: not within the timeout; the text names the messages that did not come.
        """
        if not self.expected:
            await self.stored(timeout)
        await self._context.waiter.until(
            self._missing, f"group {self._group.name} consumes again from {self._text()}", timeout
        )
        return self.delivered

    async def stored(self, timeout: float | None = None) -> dict[MessageQueue, int]:
        """Wait until the stored offset of each queue is at its target, or later if messages were redelivered.

        Raises:
            NotSeenError: not within the timeout.
        """
        latest: dict[MessageQueue, int] = {}

        async def condition() -> str | None:
            latest.clear()
            latest.update(await self._group.offsets())
            wrong = {
                queue: latest.get(queue, 0) for queue in self.targets if not self._is_stored(queue, latest)
            }
            return f"stored: {wrong}" if wrong else None

        what = f"the offsets of group {self._group.name} are at {self._text()}"
        await self._context.waiter.until(condition, what, timeout)
        return latest

    def _is_stored(self, queue: MessageQueue, offsets: Mapping[MessageQueue, int]) -> bool:
        """Return whether a queue's stored offset follows from the reset.

        Above the target it does only if the messages in between were redelivered.
        """
        stored, target = offsets.get(queue, 0), self.targets[queue]
        if stored < target:
            return False
        done = self._recorded.completed_since(self._number)
        return all(
            (queue, offset) in done for offset in range(target, stored) if (queue, offset) in self.expected
        )

    async def _missing(self) -> str | None:
        missing = self.expected - self._recorded.completed_since(self._number)
        if not missing:
            return None
        texts = [f"{queue.broker_name}/{queue.queue_id} @{offset}" for queue, offset in sorted(missing)]
        more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
        return f"{len(texts)} of {len(self.expected)} did not come again: {', '.join(texts[:_SHOWN])}{more}"

    def _text(self) -> str:
        texts = [f"{queue.broker_name}/{queue.queue_id} @{offset}" for queue, offset in self.targets.items()]
        return ", ".join(texts)
