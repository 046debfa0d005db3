"""What a search should find."""

from __future__ import annotations

from enum import StrEnum

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode


class Expectation(StrEnum):
    """Whether some schedule breaks a law."""

    BROKEN = "broken"
    KEPT = "kept"


def expected(mode: ResetMode, profile: Profile, fault: str | None) -> Expectation | None:
    """What a complete search should find; None where nothing is promised.

    ``classic`` and ``server`` lose resets, ``fenced`` never does, to consumers that know epochs. Of consumers
    that do not, an old result whose offset lies within what they were given again is taken for a new one.
    """
    if fault is not None:
        return Expectation.BROKEN
    if mode is not ResetMode.FENCED:
        return Expectation.BROKEN
    return Expectation.KEPT if profile is Profile.EPOCH else None
