"""A watched reset of one queue, for tests of the rules."""

from __future__ import annotations

from dataclasses import replace

from rewindmq import MessageQueue
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.verdict.reset_watch import ResetWatch
from rewindmq.watch.verdict.states import State

QUEUE = MessageQueue("TopicTest", "broker-a", 0)


class OneQueue:
    """Gives samples to a ``ResetWatch`` of one queue, and shows its state."""

    def __init__(self, target: int, before: QueueSample, clients: frozenset[str]) -> None:
        self._watch = ResetWatch(Sample(0.0, {QUEUE: before}, clients), {QUEUE: target}, 0.0)
        (self.queue,) = self._watch.queues

    def add(self, seconds: float, sample: Sample) -> State:
        """Add a sample, ``seconds`` after the reset; return the state."""
        self._watch.add(replace(sample, at=seconds))
        return self.queue.state

    def end(self, seconds: float) -> None:
        """Let the time be over."""
        self._watch.end(seconds)

    @property
    def state(self) -> State:
        return self.queue.state

    @property
    def reason(self) -> str:
        return self.queue.reason

    @property
    def races(self) -> tuple[str, ...]:
        return self.queue.races

    @property
    def is_over(self) -> bool:
        return self.queue.is_over
