"""Counts what consumers consumed after a reset, for redeliveries that end between two samples.

Consumers report the messages that they consumed in the last minute. If nothing else was there to consume,
these are the redelivered messages. As many as the redelivery has are all of them: a consumer goes through a
queue from one offset to the end, so it leaves out messages only if it takes the queue over twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from rewindmq.client.admin.watched_reset.positions import Position
from rewindmq.client.admin.watched_reset.sample import QueueSample, Sample
from rewindmq.protocol.message_queue import MessageQueue

# Seconds after the reset. Rates cover the last minute, up to 70 s with RewindMQ's consumers, and are up to
# 10 s old with RocketMQ's. In this interval they cover a minute or more, and the time from the reset on.
_COUNTED: Final = (60.0, 80.0)
_MINUTE: Final = 60.0
# Rates have two decimals.
_HALF: Final = 0.005
# A window of 70 s has a rate lower by a sixth than a window of a minute. More means that the consumer has
# counted for less than a minute.
_SAWTOOTH: Final = 1.2
_QUIET_MS: Final = 10_000


class RedeliveryCount:
    """Tells whether the consumers consumed every message to be redelivered.

    Args:
        before: the sample right before the reset.
        targets: target offset of each queue that was reset.
    """

    def __init__(self, before: Sample, targets: Mapping[MessageQueue, int]) -> None:
        self._before = before
        self._holders: dict[MessageQueue, str] = {}
        self._rewound: dict[str, int] = {}
        self._early: dict[str, float] = {}
        self._peak: dict[str, float] = {}
        self._is_live = dict.fromkeys(before.queues, True)
        self._gaps = dict.fromkeys(before.queues, 0)
        self._is_possible = bool(targets) and self._is_quiet(before, targets)

    def _is_quiet(self, before: Sample, targets: Mapping[MessageQueue, int]) -> bool:
        """True if the group had consumed every message, and had consumed none for a while."""
        if before.queues.keys() != targets.keys() or not _is_countable(before):
            return False
        if any(rate for rate in before.succeeded.values()):
            return False
        for queue, seen in before.queues.items():
            holder = seen.live[0] if len(seen.live) == 1 else None
            if holder is None or not _is_idle(seen, holder) or targets[queue] > seen.max_offset:
                return False
            self._holders[queue] = holder.client_id
            rewound = seen.max_offset - targets[queue]
            self._rewound[holder.client_id] = self._rewound.get(holder.client_id, 0) + rewound
        return True

    def add(self, seconds: float, sample: Sample) -> bool:
        """Take in a sample, ``seconds`` after the reset; return True if every message was consumed."""
        if not self._is_possible:
            return False
        self._is_possible = self._is_undisturbed(sample)
        first, last = _COUNTED
        rates = self._early if seconds < first else self._peak
        if self._is_possible and seconds <= last:
            for client_id, rate in sample.succeeded.items():
                rates[client_id] = max(rates.get(client_id, 0.0), rate)
        return self._is_possible and all(self._has_all(client_id) for client_id in self._rewound)

    def _is_undisturbed(self, sample: Sample) -> bool:
        """True if there is nothing but the redelivery to consume, and each queue stays with its consumer."""
        if not _is_countable(sample) or sample.clients != self._before.clients:
            return False
        return all(self._is_kept(queue, sample.queues[queue]) for queue in self._holders)

    def _is_kept(self, queue: MessageQueue, seen: QueueSample) -> bool:
        """True if the consumer has given the queue up at most once."""
        clients = {position.client_id for position in seen.positions}
        is_live = bool(seen.live)
        self._gaps[queue] += self._is_live[queue] and not is_live
        self._is_live[queue] = is_live
        is_same = seen.stored is not None and seen.max_offset == self._before.queues[queue].max_offset
        return is_same and clients <= {self._holders[queue]} and self._gaps[queue] <= 1

    def _has_all(self, client_id: str) -> bool:
        peak = self._peak.get(client_id, 0.0)
        if self._early.get(client_id, 0.0) > _SAWTOOTH * peak + 2 * _HALF:
            return False
        return math.ceil(_MINUTE * (peak - _HALF)) >= self._rewound[client_id]


def _is_countable(sample: Sample) -> bool:
    """True if each consumer reports its rates, and no message failed: a retry would count once more."""
    return (
        sample.is_complete
        and bool(sample.clients)
        and not (sample.is_broadcasting or sample.is_pulling or sample.has_failures)
        and sample.succeeded.keys() == sample.clients
    )


def _is_idle(seen: QueueSample, holder: Position) -> bool:
    return (
        seen.stored == seen.max_offset == holder.offset
        and holder.first is None
        and holder.last_pull - holder.last_consume >= _QUIET_MS
    )
