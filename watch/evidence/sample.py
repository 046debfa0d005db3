"""Sample: stored offsets and the positions of all consumers at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rewindmq.protocol.body.rewind import Rewind
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.position import Position


@dataclass(frozen=True, slots=True)
class QueueSample:
    """What one sample shows of a queue.

    Attributes:
        stored: the stored offset; None if the broker did not answer.
        max_offset: end of the queue; 0 if the broker did not answer.
        positions: of every consumer that reports the queue. They were asked after the broker, so a correct
            commit is at most the position that its consumer reports.
        rewind: what the broker has handed out since the stored offset was last set back; None if it does not
            tell, as RocketMQ's brokers.
        awaited: the target of a classic reset that no consumer has committed yet; None likewise.
    """

    stored: int | None
    max_offset: int = 0
    positions: tuple[Position, ...] = ()
    rewind: Rewind | None = None
    awaited: int | None = None

    @property
    def live(self) -> list[Position]:
        """The positions of consumers that have not dropped the queue."""
        return [position for position in self.positions if not position.dropped]


class Fetched(NamedTuple):
    """What a broker told of a group and the topic.

    Attributes:
        asked: when it was asked, on the clock of ``Sample.at``.
        messages: that the group fetched within a minute.
        ends: the ends of its queues by number, asked for right after it first told this count; None if it
            may be older.
        seconds: from the first to the last count of this minute, by the broker's clock; None if it has no
            messages.
        after: when the broker was last asked and told an older count; None if it told none.
    """

    asked: float
    messages: int
    ends: Mapping[int, int] | None = None
    seconds: float | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of all queues.

    Attributes:
        at: protocol seconds of the admin client's monotonic clock.
        clients: client ids of the connected consumers.
        is_complete: True if a broker told the connected consumers, and each of them has answered.
        consumed: client id to an upper bound of the messages of the topic consumed in the last minute;
            without clients whose rates leave messages out.
        is_broadcasting, is_pulling: the consumers' message model and type.
        telling: the consumers that told how much of the topic they consume.
        is_filtered: a subscription leaves out messages of the topic, by tags or SQL92.
        has_silent_broker: a broker did not answer, so it may be restarted.
        fetched: broker name to what it told; without brokers that do not tell, or tell their rewinds.
        shared: client ids that several consumers have. Such consumers count as without an answer.
        silent: the other consumers without an answer.
        rewinders: names of the brokers that tell the group's rewinds: RewindMQ's.
    """

    at: float
    queues: dict[MessageQueue, QueueSample]
    clients: frozenset[str] = frozenset()
    is_complete: bool = True
    consumed: Mapping[str, float] = field(default_factory=dict)
    is_broadcasting: bool = False
    is_pulling: bool = False
    telling: frozenset[str] = frozenset()
    is_filtered: bool = False
    has_silent_broker: bool = False
    fetched: Mapping[str, Fetched] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    rewinders: frozenset[str] = frozenset()


def silent_brokers(sample: Sample) -> list[str]:
    """Return the names of the brokers that did not tell the stored offsets of their queues, sorted."""
    return sorted({queue.broker_name for queue, seen in sample.queues.items() if seen.stored is None})


def name_of(queue: MessageQueue) -> str:
    """Return a queue's name for sentences, such as ``broker-a:0``."""
    return f"{queue.broker_name}:{queue.queue_id}"
