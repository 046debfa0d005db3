"""The parts of a race in the catalogue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.stage.stage import Stage


class Loss(StrEnum):
    """The ways in which a reset is lost or late (docs/spec/races.md E.1).

    ``L1``: consumption restarts at the target, but the stored offset was raised again.
    ``L2``: messages from the target on are never delivered again.
    ``L3``: two chains of pulls serve the same queue.
    ``L0``: the reset was acknowledged without effect: for a short time, or by design, for a consumer that
    ignores resets.
    """

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"


KEPT: Final[frozenset[Loss]] = frozenset()
Case = tuple[Profile, ResetMode]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One race.

    Attributes:
        id: name of the race, such as ``R1``.
        title: one line, as in ``race list``.
        section: of the specification: ``docs/spec/races.md E.4``.
        versions: the releases of RocketMQ that have it, in words.
        closed_by: what prevents the race, in words.
        cases: documented outcome by profile and mode; other combinations have no such race.
        remedies: documented outcome by single remedy and case, where the remedy changes it.
        play: the script. The judge finds the outcome in the history.
    """

    id: str
    title: str
    section: str
    versions: str
    closed_by: str
    cases: Mapping[Case, frozenset[Loss]]
    play: Callable[[Stage], Awaitable[None]]
    remedies: Mapping[Remedy, Mapping[Case, frozenset[Loss]]] = field(default_factory=dict)

    def documented(self, profile: Profile, mode: ResetMode, remedy: Remedy | None) -> frozenset[Loss]:
        """Return the documented outcome; KeyError if the race has no such case."""
        without = self.cases[profile, mode]
        return without if remedy is None else self.remedies.get(remedy, {}).get((profile, mode), without)
