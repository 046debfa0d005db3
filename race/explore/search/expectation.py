"""What a search should find."""

from __future__ import annotations

from enum import StrEnum

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.search.pool import Setting


class Expectation(StrEnum):
    """Whether some schedule breaks a law."""

    BROKEN = "broken"
    KEPT = "kept"


def expected(setting: Setting, fault: str | None) -> Expectation | None:
    """What a search should find; None where nothing is promised.

    Classic resets get lost, server resets in the models that say how, and fenced ones never, to consumers
    that know epochs. Of consumers that do not, an old result whose offset lies within what they were given
    again is taken for a new one.
    """
    if fault is not None:
        return Expectation.BROKEN
    if setting.mode is ResetMode.FENCED:
        return Expectation.KEPT if setting.profile is Profile.EPOCH else None
    needed = setting.model.late_to_break.get(setting.mode)
    return Expectation.BROKEN if needed is not None and setting.budget >= needed else None
