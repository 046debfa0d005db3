"""Shorthand for the documented outcomes of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.scenario.scenario import KEPT, Case, Loss

Outcomes = Mapping[Profile, frozenset[Loss]]

NONE: Final[Outcomes] = MappingProxyType({})


def lost(*losses: Loss) -> frozenset[Loss]:
    """Return the outcome of a reset that is lost in these ways."""
    return frozenset(losses)


def all_releases(outcome: frozenset[Loss], *more: Profile) -> dict[Profile, frozenset[Loss]]:
    """Return the same outcome for every release and for the profiles in ``more``."""
    return dict.fromkeys((*RELEASES, *more), outcome)


ALL_KEPT: Final[Outcomes] = MappingProxyType(all_releases(KEPT, Profile.EPOCH))
# A server-side reset that is kept. A client before 5.2.0 needs 10 s to apply it, and commits the old offset
# again meanwhile; a later commit of the target repairs that (S1 of docs/spec/races.md E.16).
KEPT_LATE: Final[Outcomes] = MappingProxyType(
    {**all_releases(frozenset({Loss.L0}), Profile.EPOCH), Profile.V53: KEPT}
)


def cases(
    *, classic: Outcomes = NONE, server: Outcomes = NONE, fenced: Outcomes = NONE
) -> Mapping[Case, frozenset[Loss]]:
    """Return the documented outcomes of one race by profile and mode."""
    by_mode = {ResetMode.CLASSIC: classic, ResetMode.SERVER: server, ResetMode.FENCED: fenced}
    return MappingProxyType(
        {
            (profile, mode): outcome
            for mode, outcomes in by_mode.items()
            for profile, outcome in outcomes.items()
        }
    )
