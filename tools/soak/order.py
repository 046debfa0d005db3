"""Checks orderly consumption.

RocketMQ promises the following for a queue that is consumed in order, during kills, rebalances and resets.
While one consumer owns the queue (one ProcessQueue, called a chain), its listener gets the offsets one after
another without a gap. A message whose listener suspends the queue is delivered again before the next one.

The next owner begins at the group's committed offset. This is at most the end of what was delivered, and at
least what the previous owner has committed. An owner commits some seconds late. So the offset includes what
the owner had received some seconds before the last message that it accepted. Only a reset may set it further
back.

RocketMQ promises nothing about two consumers that overlap after the broker has lost its locks, by a restart
or by their expiry.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tools.soak.journal import SUSPENDED, Delivered
from tools.soak.verdict import SoakVerdict, ViolationKind


class _Chain(NamedTuple):
    """The next offset that a chain's listener must get."""

    next_offset: int
    at: int


class QueueOrder:
    """Checks one queue of one orderly group.

    Args:
        commit_us: within which time a delivered message is committed and on the broker's disk.
    """

    def __init__(self, name: str, commit_us: int, verdict: SoakVerdict) -> None:
        self._name = name
        self._commit_us = commit_us
        self._verdict = verdict
        self._chains: dict[tuple[str, int], _Chain] = {}
        # One past the furthest offset ever accepted.
        self._furthest = 0
        # When an owner last accepted a message: it may have lost the queue right after and could not commit.
        self._last_at = 0
        # (at, offset): messages before the offset were accepted by then, so they must be committed
        # ``commit_us`` later. The first entry is committed.
        self._committed: deque[tuple[int, int]] = deque([(0, 0)])
        self._outages: deque[tuple[int, int]] = deque(maxlen=8)

    def reset(self, target: int) -> None:
        """Allow an owner to begin at the target, now or later."""
        self._committed = deque([(0, min(target, self._floor(0)))])

    def broker_was_down(self, since: int, until: int) -> None:
        """Record an outage, during which no owner could commit."""
        self._outages.append((since, until))

    def delivered(self, owner: str, delivery: Delivered) -> None:
        key = owner, delivery.chain
        offset = delivery.offset
        chain = self._chains.get(key)
        if chain is None:
            self._begins(owner, delivery)
        elif offset != chain.next_offset:
            self._verdict.add(
                ViolationKind.OUT_OF_ORDER,
                f"{self._name}: {owner} got {offset} where {chain.next_offset} had to come (chain {key[1]})",
            )
        is_done = delivery.verdict != SUSPENDED
        self._chains[key] = _Chain(offset + 1 if is_done else offset, delivery.at)
        if is_done:
            self._accepted(offset + 1, delivery.at)

    def _begins(self, owner: str, delivery: Delivered) -> None:
        """Check the first message of a chain."""
        if delivery.offset > self._furthest:
            self._verdict.add(
                ViolationKind.OUT_OF_ORDER,
                f"{self._name}: {owner} begins at {delivery.offset}, {self._furthest} was never delivered",
            )
        floor = self._floor(self._last_at)
        if delivery.offset < floor:
            self._verdict.add(
                ViolationKind.WENT_BACK,
                f"{self._name}: {owner} begins at {delivery.offset}, {floor} was committed",
            )
        # The chain begins at the group's committed offset, so entries above it no longer hold.
        while self._committed and self._committed[-1][1] > delivery.offset:
            self._committed.pop()
        if not self._committed:
            self._committed.append((0, delivery.offset))
        if len(self._chains) > 64:
            oldest = min(self._chains, key=lambda key: self._chains[key].at)
            del self._chains[oldest]

    def _accepted(self, next_offset: int, at: int) -> None:
        self._furthest = max(self._furthest, next_offset)
        self._last_at = at
        latest_at, latest = self._committed[-1]
        if next_offset < latest or at - latest_at < 100_000:
            return
        self._committed.append((at, next_offset))

    def _floor(self, at: int) -> int:
        """Return the offset that must have been committed at a time."""
        limit = at - self._commit_us - self._outage_us(at)
        while len(self._committed) > 1 and self._committed[1][0] <= limit:
            self._committed.popleft()
        return self._committed[0][1]

    def _outage_us(self, at: int) -> int:
        """Return how long recent outages of the broker delayed commits, µs."""
        return sum(until - since for since, until in self._outages if until > at - 20 * self._commit_us)
