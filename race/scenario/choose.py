"""Chooses the profile and mode of a run where the user names only one of them, or none."""

from __future__ import annotations

from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode, default_mode
from rewindmq.race.errors import RaceError
from rewindmq.race.scenario.scenario import Case, Scenario

# By mode, the profiles in the order to try.
_PREFERRED: Final = {
    ResetMode.CLASSIC: (Profile.V49, Profile.V42, Profile.V53, Profile.UNGUARDED, Profile.EPOCH),
    ResetMode.SERVER: (Profile.V53, Profile.V49, Profile.V42, Profile.UNGUARDED, Profile.EPOCH),
    ResetMode.FENCED: (Profile.EPOCH, Profile.V49, Profile.V53, Profile.V42, Profile.UNGUARDED),
}


def choose_case(
    scenario: Scenario, profile: Profile | None, mode: ResetMode | None, remedy: Remedy | None = None
) -> Case:
    """Return the profile and mode to play a race with; ``None`` leaves the choice to this function.

    A profile without a mode is played in the mode of its release, if the race exists there.

    With a remedy, this function never chooses an epoch-aware client, which has most remedies already. It
    chooses fenced mode for remedy F12, whose epochs take effect only there.

    Raises:
        RaceError: the race does not exist for this profile and mode; the text names the cases it has.
    """
    if mode is None and remedy is Remedy.F12:
        mode = ResetMode.FENCED
    for candidate_mode in _modes(profile) if mode is None else (mode,):
        profiles = _PREFERRED[candidate_mode] if profile is None else (profile,)
        for candidate in profiles:
            is_left_out = remedy is not None and candidate is Profile.EPOCH and profile is None
            if (candidate, candidate_mode) in scenario.cases and not is_left_out:
                return candidate, candidate_mode
    asked = " in ".join(
        text for text in (profile and f"profile {profile}", mode and f"mode {mode}") if text is not None
    )
    raise RaceError(f"{scenario.id} cannot be played with {asked}, only with {describe_cases(scenario)}")


def _modes(profile: Profile | None) -> list[ResetMode]:
    """Return the modes in the order to try: first that of the profile's release."""
    own = default_mode(profile or Profile.V49)
    return sorted(ResetMode, key=lambda mode: mode is not own)


def describe_cases(scenario: Scenario) -> str:
    """Return the cases of a race as text: ``classic (v42, v49), fenced (epoch)``."""
    parts = []
    for mode in ResetMode:
        profiles = [str(profile) for profile in Profile if (profile, mode) in scenario.cases]
        if profiles:
            parts.append(f"{mode} ({', '.join(profiles)})")
    return ", ".join(parts)


def remedy_cases(scenario: Scenario) -> dict[Remedy, Case]:
    """Return the case that shows each remedy; F12 is left out if the race has no fenced case."""
    modes = {mode for _, mode in scenario.cases}
    return {
        remedy: choose_case(scenario, None, None, remedy)
        for remedy in Remedy
        if remedy is not Remedy.F12 or ResetMode.FENCED in modes
    }
