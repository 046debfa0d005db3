"""Judges a recorded watch: finds the reset in it, and gives its samples to ``ResetWatch``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.record.recording import Recording
from rewindmq.watch.rules.rewound import is_same_rewind
from rewindmq.watch.verdict.reset_watch import Change, ResetWatch

# Consumers drop their queues at the reset, and store the target 10 s later.
_CLASSIC_WAIT: Final = 12.0
_NOT_FOUND: Final = (
    "the recording shows no reset: no stored offset moves back. If there was one, name its time with --at,"
    " and the offsets that its command printed with --to-offset BROKER:QUEUE=OFFSET"
)


@dataclass(frozen=True, slots=True)
class FoundReset:
    """A reset in a recording.

    Attributes:
        index: of the last sample before it.
        targets: where it moved each queue.
    """

    index: int
    targets: Mapping[MessageQueue, int]


def find_reset(samples: list[Sample]) -> FoundReset:
    """Find the first reset: the first stored offset that moves back, and those that follow within 12 s.

    If the consumers gave their queues up within 12 s before, the reset was then, and classic.

    Raises:
        ClientError: no stored offset moves back.
    """
    moved: dict[MessageQueue, tuple[int, int]] = {}
    for index in range(1, len(samples)):
        for queue, seen in samples[index].queues.items():
            target = _moved_back(samples[index - 1].queues[queue], seen)
            if target is not None and queue not in moved:
                moved[queue] = index, target
    if not moved:
        raise ClientError(_NOT_FOUND)
    first = min(index for index, _ in moved.values())
    until = samples[first].at + _CLASSIC_WAIT
    targets = {queue: target for queue, (index, target) in moved.items() if samples[index].at <= until}
    return FoundReset(_given_up(samples, first, targets) - 1, targets)


def reset_at(samples: list[Sample], seconds: float, targets: Mapping[MessageQueue, int]) -> FoundReset:
    """Return the reset that the operator names.

    Args:
        seconds: when the reset was, since the first sample.

    Raises:
        ClientError: a queue is not in the recording, or the recording begins after the reset.
    """
    if unknown := sorted(targets.keys() - samples[0].queues.keys()):
        queue = unknown[0]
        raise ClientError(f"the recording has no queue {queue.broker_name}:{queue.queue_id}")
    before = [index for index, sample in enumerate(samples) if sample.at - samples[0].at <= seconds]
    if not before or before[-1] == len(samples) - 1:
        raise ClientError(f"--at {seconds:g} is outside the recording, of {_length(samples):.1f} s")
    return FoundReset(before[-1], targets)


def judge(recording: Recording, reset: FoundReset) -> Iterator[Change | ResetWatch]:
    """Yield each change, and then the watch with the last states."""
    samples = recording.samples
    before = samples[reset.index]
    watch = ResetWatch(before, reset.targets, before.at)
    for sample in samples[reset.index + 1 :]:
        yield from watch.add(sample)
    yield from watch.end(samples[-1].at)
    yield watch


def _moved_back(before: QueueSample, seen: QueueSample) -> int | None:
    """Return the target if the stored offset moved back between two samples."""
    if before.stored is None or seen.stored is None:
        return None
    if seen.rewind is not None and not is_same_rewind(before.rewind, seen.rewind):
        return seen.rewind.target
    return seen.stored if seen.stored < before.stored else None


def _given_up(samples: list[Sample], first: int, targets: Mapping[MessageQueue, int]) -> int:
    """Return the index of the first sample in which a consumer has given one of the queues up."""
    since = samples[first].at - _CLASSIC_WAIT
    for index in range(1, first):
        if samples[index].at >= since and any(
            samples[index - 1].queues[queue].live and not samples[index].queues[queue].live
            for queue in targets
            if samples[index].is_complete
        ):
            return index
    return first


def _length(samples: list[Sample]) -> float:
    return samples[-1].at - samples[0].at
