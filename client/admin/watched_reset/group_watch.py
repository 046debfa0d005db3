"""Follows the consumers of a group from sample to sample, for all queues of a watch."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from rewindmq.client.admin.watched_reset.brokers import HEARTBEAT
from rewindmq.client.admin.watched_reset.sample import Sample

# Seconds. A consumer does not take a queue, redeliver it and give it up in less.
_MUTE: Final = 3.0
# Seconds between two lists of consumers: in one that failed, no process has left and come back.
_NEXT_LIST: Final = 1.2


@dataclass(frozen=True, slots=True)
class GroupSample:
    """What a sample shows of the group's consumers, after the samples before it.

    Attributes:
        sample: the sample. It is incomplete if a restarted broker may not know all consumers yet.
        known: every consumer that was connected before the reset or since.
        mute: consumers that are connected, and have not answered for 3 s.
        has_lost_client: a consumer that was connected right before the reset is not connected now.
        is_short: consumers are missing in the list, because a restarted broker may not know them yet.
        has_whole_rates: since the reset, no consumer has left, and the rates count every message.
        consumed: upper bound of the messages that the consumers consumed in the last minute.
    """

    sample: Sample
    known: AbstractSet[str]
    mute: frozenset[str]
    has_lost_client: bool
    is_short: bool
    has_whole_rates: bool
    consumed: float


class GroupWatch:
    """The consumers of a group during a watch. Its queues share it.

    Args:
        clients: the consumers right before the reset.
    """

    def __init__(self, clients: frozenset[str]) -> None:
        self.before = clients
        # Client ids that several consumers have, in the last sample.
        self.shared: frozenset[str] = frozenset()
        self._known = set(clients)
        self._mute_since: dict[str, float] = {}
        self._is_silent = False
        # When the broker last answered again, and did not list every consumer.
        self._restarted: float | None = None
        self._has_whole_rates = True
        # When the list of consumers was last there.
        self._listed_at = 0.0
        self._has_list = True
        self._last: tuple[float, GroupSample, Sample] | None = None

    def add(self, seconds: float, sample: Sample) -> GroupSample:
        """Take in a sample, ``seconds`` after the reset.

        Each queue gives the sample, and all of them get the result of the first call.
        """
        if self._last is not None and self._last[0] == seconds and self._last[2] is sample:
            return self._last[1]
        group = self._group_sample(seconds, sample)
        self._last = seconds, group, sample
        return group

    def _group_sample(self, seconds: float, sample: Sample) -> GroupSample:
        self.shared = sample.shared
        missing = self._known - sample.clients
        self._known |= sample.clients
        is_short = self._is_short(seconds, sample, has_missing=bool(missing))
        seen = replace(sample, is_complete=False) if is_short else sample
        self._note_mute(seconds, seen)
        has_left = bool(missing) and (bool(sample.clients) or sample.is_complete)
        # A client that leaves no longer tells how much it consumed, and filters pass messages uncounted.
        if self._has_lost_list(seconds, seen) or has_left or sample.is_filtered:
            self._has_whole_rates = False
        return GroupSample(
            seen,
            self._known,
            frozenset(client for client, since in self._mute_since.items() if seconds - since >= _MUTE),
            bool(sample.clients) and not self.before <= sample.clients,
            is_short,
            self._has_whole_rates,
            sum(sample.consumed.values()),
        )

    def _is_short(self, seconds: float, sample: Sample, *, has_missing: bool) -> bool:
        """True if consumers are missing because a restarted broker may not know them yet.

        A broker that does not answer once may only be busy. Then its list still has every consumer.
        """
        # The list may come from the broker of another queue.
        is_silent = sample.has_silent_broker
        if self._is_silent and not is_silent:
            self._restarted = seconds if has_missing else None
        self._is_silent = is_silent
        is_recent = self._restarted is not None and seconds - self._restarted < HEARTBEAT
        return has_missing and (is_silent or is_recent)

    def _note_mute(self, seconds: float, sample: Sample) -> None:
        """Note the consumers that do not answer for a while: they may have a queue, and redeliver it."""
        mute = frozenset() if sample.is_complete else sample.clients - sample.succeeded.keys()
        self._mute_since = {client: self._mute_since.get(client, seconds) for client in mute}

    def _has_lost_list(self, seconds: float, sample: Sample) -> bool:
        """Return True if more than one list of consumers in a row failed; note when one was there."""
        if seconds - self._listed_at > _NEXT_LIST and not self._has_list:
            return True
        self._has_list = sample.is_complete or bool(sample.clients)
        if self._has_list:
            self._listed_at = seconds
        return False
