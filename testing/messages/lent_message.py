"""LentMessage: a message that the test has popped, until it is acknowledged or its invisible time is over."""

from __future__ import annotations

from rewindmq.client.push.pop.acknowledger import Acknowledger
from rewindmq.client.push.pop.pop_result import PoppedMessage
from rewindmq.protocol.pop.extra_info import ExtraInfo
from rewindmq.testing.messages.kit_message import KitMessage, kit_message


class LentMessage:
    """One delivery of a message to a group that pops.

    Attributes:
        message: the message; ``queue`` and ``offset`` of a revived one are those in its retry topic.
        attempt: 1 for the first delivery. It does not count in orderly POPs.
        handle: what acknowledges it; each change of the invisible time replaces it.
    """

    __slots__ = ("_acks", "_topic", "attempt", "handle", "message")

    def __init__(self, popped: PoppedMessage, topic: str, acks: Acknowledger) -> None:
        self.message: KitMessage = kit_message(popped.message)
        self.attempt: int = popped.message.reconsume_times + 1
        self.handle: ExtraInfo = popped.handle
        self._topic = topic
        self._acks = acks

    def __repr__(self) -> str:
        return f"<LentMessage {self.message!r}, attempt {self.attempt}>"

    @property
    def body(self) -> bytes:
        """The message's body."""
        return self.message.body

    async def ack(self) -> None:
        """Acknowledge the message. The broker accepts it in silence if it came too late.

        Raises:
            RewindMQError: the broker did not answer, or refused it.
        """
        await self._acks.ack_now(self._topic, self.handle)

    async def change_invisible_time(self, seconds: float) -> None:
        """Hide the message for so many seconds of the cluster's time from now.

        Raises:
            RewindMQError: the broker did not answer, or refused it.
        """
        milliseconds = round(seconds * 1_000)
        self.handle = await self._acks.change_invisible_time(self._topic, self.handle, milliseconds)

    def visible_at(self, time_scale: float) -> int:
        """Return when the invisible time is over, in ms since 1970."""
        return self.handle.pop_time + round(self.handle.invisible_time * time_scale)
