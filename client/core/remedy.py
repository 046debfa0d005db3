"""Remedies of docs/spec/races.md E.18 that change one attribute of a client's profile."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from rewindmq.client.core.profile import CLIENT_PROFILES, ClientProfile
from rewindmq.protocol.profile import Profile


class Remedy(StrEnum):
    """A single change to a client against lost resets.

    ``F1``: an empty pull moves the offset only if its queue is not dropped.
    ``F2``: a reset's apply pass also drops the queues that it removes from the table.
    ``F3``: a dropped queue's pull is cancelled.
    ``F8``: an offset changes only if its ProcessQueue is the registered one.
    ``F12``: pulls and commits carry an epoch; needs brokers that reset in fenced mode.
    """

    F1 = "F1"
    F2 = "F2"
    F3 = "F3"
    F8 = "F8"
    F12 = "F12"


_CHANGES: Final = MappingProxyType[Remedy, dict[str, Any]](
    {
        Remedy.F1: {"checks_dropped_on_empty_pull": True},
        Remedy.F2: {"drops_on_apply": True},
        Remedy.F3: {"cancels_pulls": True},
        Remedy.F8: {"offset_cell_per_queue_object": True},
        Remedy.F12: {"knows_epochs": True},
    }
)


def remedied(release: Profile, remedy: Remedy | None) -> ClientProfile:
    """Return a release's profile with one remedy added, or unchanged if ``remedy`` is None."""
    profile = CLIENT_PROFILES[release]
    return profile if remedy is None else replace(profile, **_CHANGES[remedy])
