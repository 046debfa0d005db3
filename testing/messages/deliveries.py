"""Deliveries: every call of a group's listener, recorded in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.testing.messages.kit_message import KitMessage, kit_message


class Outcome(StrEnum):
    """The state of a delivery. ``FAILED``: the message is redelivered; ``DEAD``: it becomes a dead letter."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"


@dataclass(slots=True, eq=False)
class Delivery:
    """One message in one call of the listener.

    Attributes:
        number: its place among the group's deliveries, from 0.
        message: the message as it was sent.
        received: the message as the consumer got it; in a retry its queue is the retry topic's.
        client_id: the consumer.
    """

    number: int
    message: KitMessage
    received: MessageExt
    client_id: str
    outcome: Outcome = Outcome.RUNNING

    @property
    def reconsume_times(self) -> int:
        """How often the message was sent back before."""
        return self.received.reconsume_times


class Deliveries:
    """The deliveries of one group, in the order in which the calls began.

    Args:
        sent: messages that the test sent, by id.
        changed: called after each change.
    """

    def __init__(self, sent: dict[str, KitMessage], changed: Callable[[], None]) -> None:
        self.all: list[Delivery] = []
        self._sent = sent
        self._changed = changed
        # Messages whose place the test's send did not return, as they were delivered first, by id.
        self._first: dict[str, KitMessage] = {}
        self._running: set[Delivery] = set()
        # Messages whose last delivery failed and which will come again, by id.
        self._unsettled: dict[str, KitMessage] = {}

    @property
    def running(self) -> int:
        """Number of messages whose listener runs."""
        return len(self._running)

    @property
    def unsettled(self) -> list[KitMessage]:
        """Messages that the listener failed and that were not redelivered successfully since."""
        return list(self._unsettled.values())

    def begin(self, messages: Sequence[MessageExt], client_id: str) -> list[Delivery]:
        """Record the begin of a call."""
        begun = []
        for received in messages:
            delivery = Delivery(len(self.all), self._message(received), received, client_id)
            self.all.append(delivery)
            self._running.add(delivery)
            begun.append(delivery)
        self._changed()
        return begun

    def end(self, delivery: Delivery, outcome: Outcome) -> None:
        """Record the end of a call for one of its messages."""
        delivery.outcome = outcome
        self._running.discard(delivery)
        if outcome is Outcome.FAILED:
            self._unsettled[delivery.message.id] = delivery.message
        else:
            self._unsettled.pop(delivery.message.id, None)
        self._changed()

    def since(self, number: int) -> list[Delivery]:
        """Return the deliveries from a number on."""
        return self.all[number:]

    def positions(self) -> set[tuple[MessageQueue, int]]:
        """Return queue and offset of each message that was delivered at least once."""
        return {(each.message.queue, each.message.offset) for each in self.all}

    def completed_since(self, number: int) -> set[tuple[MessageQueue, int]]:
        """Return queue and offset of each message that succeeded in a delivery from ``number`` on."""
        return {
            (each.message.queue, each.message.offset)
            for each in self.all[number:]
            if each.outcome is Outcome.SUCCEEDED
        }

    def _message(self, received: MessageExt) -> KitMessage:
        """Return a message with its place in the topic.

        A retry has another place, so the first delivery counts for messages that the application sent. The
        place of a delayed message is known from its delivery only.
        """
        sent = self._sent.get(received.msg_id)
        if sent is not None and sent.offset >= 0:
            return sent
        return self._first.setdefault(received.msg_id, kit_message(received))
