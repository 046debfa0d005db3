"""Expected result of a search."""

from __future__ import annotations

from enum import StrEnum

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.search.job import Setting


class Expectation(StrEnum):
    """Expected result: some schedule breaks a law, or none does."""

    BROKEN = "broken"
    KEPT = "kept"


def expected(setting: Setting, fault: str | None) -> Expectation | None:
    """Return what a search should find; None if nothing is promised.

    A model's ``late_to_break`` says how many late messages lose a classic or server reset. Epoch-aware
    consumers never lose a fenced reset. Nothing is promised for other consumers: the broker accepts an old
    result of theirs if its offset lies within the messages that it has redelivered to them.
    """
    if fault is not None:
        return Expectation.BROKEN
    if setting.mode is ResetMode.FENCED:
        return Expectation.KEPT if setting.profile is Profile.EPOCH else None
    needed = setting.model.late_to_break.get(setting.mode)
    return Expectation.BROKEN if needed is not None and setting.budget >= needed else None
