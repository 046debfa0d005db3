"""The three ways to reset a group (``docs/reset.md``)."""

from __future__ import annotations

from enum import StrEnum

from rewindmq.protocol.profile import Profile


class ResetMode(StrEnum):
    """How INVOKE_BROKER_TO_RESET_OFFSET (222) resets a group.

    ``classic``: the broker notifies the consumers, which wait 10 s and commit the target (RocketMQ 4.x).
    ``server``: the broker stores the target and a mark that the next pull consumes (RocketMQ 5).
    ``fenced``: the broker raises the queue's epoch with the target, and refuses commits of older epochs.
    """

    CLASSIC = "classic"
    SERVER = "server"
    FENCED = "fenced"


def default_mode(profile: Profile) -> ResetMode:
    """Return how the profile's release resets: since 5.2.0 at the server (docs/spec/reset.md D.9)."""
    return ResetMode.SERVER if profile.release is Profile.V53 else ResetMode.CLASSIC
